package notify

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// leads is the session of an instance that leads.
type leads struct {
	fakeSession
	term queue.Term
}

func (s leads) Term() (queue.Term, time.Time, bool) { return s.term, time.Time{}, true }

// follows runs the notifier of a leader until the test ends.
func (l *leader) follows() {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- l.Run(leads{fakeSession{ctx, make(chan struct{})}, l.term}) }()
	l.w.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			l.w.Error(err)
		}
	})
}

// A message comes when its window ends, and windows end at whole minutes.
func TestRun_tellsAtTheEndOfEachWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testredis.Mini(t).Client)
		l := w.lead("a", Target{Name: "ops", URL: ops.URL, On: []Topic{Missed}})
		l.follows()
		time.Sleep(time.Until(aligned(time.Now(), time.Minute).Add(90 * time.Second)))
		for range 10 {
			w.note("m@1000 missed outage")
			time.Sleep(2 * time.Second)
		}
		time.Sleep(9 * time.Second)
		w.same()
		time.Sleep(2 * time.Second)
		w.same("10 slots were missed")
		time.Sleep(10 * time.Minute)
		w.same("10 slots were missed")
	})
}

// While Redis refuses, the notifier tries again, ever more rarely, and says so once; nothing is lost.
func TestRun_goesOnWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		w := newWorld(t, mini.Client)
		l := w.lead("a", Target{Name: "ops", URL: ops.URL, On: []Topic{Missed}})
		var lines bytes.Buffer
		l.cfg.Log = zerolog.New(&lines)
		l.follows()
		time.Sleep(time.Minute)
		w.note("m@1000 missed outage")
		mini.SetError("ERR broken")
		time.Sleep(10 * time.Minute)
		mini.SetError("")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := strings.Count(lines.String(), "cannot follow"); got != 1 || strings.Count(lines.String(), "notifying goes on") != 1 {
			t.Errorf("%s", lines.String())
		}
		w.same("1 slot was missed")
	})
}
