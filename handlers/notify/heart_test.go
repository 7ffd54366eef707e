package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// withHeartbeats are the schedules of a leader.
type withHeartbeats map[string]producer.Heartbeat

func (s withHeartbeats) Heartbeat(name string) (producer.Heartbeat, bool) {
	h, ok := s[name]
	return h, ok
}
func (s withHeartbeats) HearsStart() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s)), func(h producer.Heartbeat) bool { return h.Start != "" })
}

func newHeart(t *testing.T, of withHeartbeats) *Heart {
	t.Helper()
	h, err := NewHeart(testredis.Client(t), testredis.Namespace(t), HeartConfig{Schedules: of})
	must(t, err)
	return h
}

// hears tells a heart of runs that ended: "nightly done" is one.
func (h *Heart) hears(t *testing.T, term int64, ended ...string) {
	t.Helper()
	var runs []producer.Run
	for _, one := range ended {
		name, word, _ := strings.Cut(one, " ")
		runs = append(runs, producer.Run{Schedule: name, Outcome: task.Outcome(word), Began: time.Now()})
	}
	must(t, h.Hear(t.Context(), task.Term{Epoch: term}, runs))
}

// sent takes a heartbeat out of the queue, as its end does.
func (h *Heart) sent(t *testing.T, id string) {
	t.Helper()
	_, err := h.q.Cancel(t.Context(), id, "", true)
	must(t, err)
}

// waits are the signals that wait to be sent, in the order of the schedules.
func (h *Heart) waits(t *testing.T, schedules ...string) string {
	t.Helper()
	var list []string
	for _, name := range schedules {
		found, err := h.q.Task(t.Context(), HeartbeatType+":"+name)
		if errors.Is(err, task.ErrNotFound) {
			list = append(list, "none")
			continue
		}
		must(t, err)
		var b beat
		must(t, json.Unmarshal(found.Task.Payload, &b))
		list = append(list, b.Signal)
	}
	return strings.Join(list, " ")
}

// The last of the ends of a look is signalled. At most one heartbeat of a schedule waits; a heartbeat that comes meanwhile goes after it.
func TestHeart_signalsTheLastEndOneAtATime(t *testing.T) {
	t.Parallel()
	h := newHeart(t, withHeartbeats{"a": {URL: "u"}, "b": {URL: "u", Fail: "f"}})
	h.hears(t, 1, "a done", "a dead", "b done", "b dead", "none done")
	if got := h.waits(t, "a", "b"); got != "success fail" {
		t.Fatalf("%s wait", got)
	}
	h.hears(t, 1, "b dead", "b done")
	h.hears(t, 1)
	if got := h.waits(t, "b"); got != "fail" {
		t.Fatalf("%s waits, before the first is sent", got)
	}
	h.sent(t, HeartbeatType+":b")
	h.hears(t, 1)
	if got := h.waits(t, "b"); got != "success" {
		t.Errorf("%s waits", got)
	}
}

// A heartbeat that waits for its turn belongs to a term: a later leader knows better.
func TestHeart_forgetsWhatWaitsWithItsTerm(t *testing.T) {
	t.Parallel()
	h := newHeart(t, withHeartbeats{"a": {URL: "u", Fail: "f"}})
	h.hears(t, 1, "a done")
	h.hears(t, 1, "a dead")
	h.hears(t, 2)
	h.sent(t, HeartbeatType+":a")
	h.hears(t, 2)
	if got := h.waits(t, "a"); got != "none" {
		t.Errorf("%s waits", got)
	}
}

// A run that goes on is signalled once, after the end of the run before it.
func TestHeart_signalsAStartOnceAfterTheLastEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	l := w.lead("a")
	h, err := NewHeart(w.rdb, w.part.Namespace, HeartConfig{Schedules: withHeartbeats{"a": {URL: "u", Start: "s"}}})
	must(t, err)
	must(t, w.rdb.HSet(t.Context(), w.q.Keys().Running(l.term.Gen), "a@1000", fmt.Sprintf("1 %d 1000", time.Now().UnixMilli())).Err())
	for i, want := range []string{"success", "start", "none"} {
		var ended []string
		if i == 0 {
			ended = []string{"a done"}
		}
		h.hears(t, 1, ended...)
		if got := h.waits(t, "a"); got != want {
			t.Fatalf("look %d: %s waits, want %s", i, got, want)
		}
		if want != "none" {
			h.sent(t, HeartbeatType+":a")
		}
	}
}
