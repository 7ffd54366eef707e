package store

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// When another primary is found, connections to the one before end, also those that are still being set up; and none is
// made to it any more.
func TestSentinels_connectionsToTheOldPrimaryEnd(t *testing.T) {
	t.Parallel()
	s := newSentinels(&redis.FailoverOptions{MasterName: "beat"}, zerolog.Nop())
	pipe := func(addr string) (net.Conn, bool) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		return s.lead(here, addr)
	}
	s.found(t.Context(), named{names: "a"}, nil, nil)
	old, ok := pipe("a")
	if !ok {
		t.Fatal("a connection to the primary was refused")
	}
	s.found(t.Context(), named{names: "b"}, nil, nil)
	_ = old.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a connection to the old primary lives: %v", err)
	}
	if _, ok := pipe("a"); ok {
		t.Error("one more was made to it")
	}
	now, ok := pipe("b")
	s.found(t.Context(), named{names: "b"}, nil, nil)
	s.mu.Lock()
	n := len(s.conns)
	s.timer.Stop()
	s.mu.Unlock()
	if !ok || n != 1 {
		t.Errorf("the connection to the new one was refused, or ended: %v, %d", ok, n)
	}
	_ = now.Close()
	if len(s.conns) != 0 {
		t.Error("one that was closed is kept in mind")
	}
}

// Of two names that sentinels have for one server, the one in use stays: another would end all connections.
func TestRanked_keepsTheNameInUse(t *testing.T) {
	t.Parallel()
	heard := []named{{names: "a", epoch: 5}, {names: "b", epoch: 5}, {names: "b", epoch: 5}}
	for used, want := range map[string]string{"a": "a", "b": "b", "": "b", "old": "b"} {
		if got := ranked(heard, used)[0].names; got != want {
			t.Errorf("with %q in use: %q, want %q", used, got, want)
		}
	}
	if got := ranked([]named{{names: "a", epoch: -1}, {names: "b", epoch: -1}, {names: "b", epoch: -1}}, "a")[0].names; got != "b" {
		t.Errorf("of sentinels that do not tell: %q, want what most say", got)
	}
}

// A connection that is made while the sentinels are asked again begins that anew.
func TestSentinels_looksAgainAfterEachConnection(t *testing.T) {
	t.Parallel()
	s := newSentinels(&redis.FailoverOptions{MasterName: "beat", SentinelAddrs: []string{}, DialTimeout: time.Second}, zerolog.Nop())
	here, there := net.Pipe()
	t.Cleanup(func() { _ = there.Close() })
	if _, ok := s.lead(here, "a"); !ok {
		t.Fatal("a connection was refused")
	}
	s.mu.Lock()
	before := s.leads
	s.leads++ // as by another connection
	s.timer.Stop()
	s.timer = time.NewTimer(time.Hour)
	mine := s.timer
	s.mu.Unlock()
	s.lookAgain(len(lookAfter)-1, before)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != mine || !mine.Stop() {
		t.Error("the last look of before ended the one that had begun anew")
	}
}
