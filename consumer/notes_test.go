package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func archive(output int) func(*setup) {
	return func(s *setup) { s.caps = queue.Caps{Archive: 10_000, Output: output} }
}

// notes are those of both streams.
func (w *world) notes() (list []history.Note) {
	w.Helper()
	for _, read := range []func(context.Context, string, func(history.Entry) error) error{w.q.HistoryAfter, w.q.RunsAfter} {
		must(w, read(w.Context(), "", func(e history.Entry) error {
			list = append(list, e.Notes...)
			return nil
		}))
	}
	return list
}

// runKey names one run.
func runKey(id string, attempt int, claimed time.Time) string {
	return fmt.Sprint(id, " ", attempt, " ", claimed.UnixMilli())
}

// With an archive each run that began has one note, whatever ended it and whatever its task is: done, failed, dead, cancelled,
// or lost with its instance.
func TestNotes_eachRunHasOneForAnArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	var held atomic.Int64
	behave := func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		handlers.Output(ctx, "out of "+tk.ID)
		switch how := string(tk.Payload); {
		case how == "fail" && tk.Attempt == 1:
			return errors.New("not yet")
		case how == "die":
			return handlers.Dead(errors.New("never"))
		case how == "panic" && tk.Attempt == 1:
			panic("no")
		case how == "cancel":
			if _, err := w.q.Cancel(context.WithoutCancel(ctx), tk.ID, "by hand", false); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		case how == "late" && tk.Attempt == 1:
			<-ctx.Done()
			return context.Cause(ctx)
		case how == "hold" && tk.Attempt == 1:
			held.Add(1)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}
	common := []func(*setup){archive(64), concurrency(50), lease(time.Second), drain(100 * time.Millisecond)}
	a := w.start(one(t, behave), common...)
	w.leads(a)
	var all []*task.Task
	for i, how := range []string{"do", "fail", "die", "panic", "cancel", "late", "hold"} {
		for k := range 8 { // slot or not, kept or not, keyed or not
			tk := job(fmt.Sprintf("%s@%d", how, k), task.Keep(-1), task.Retry(time.Millisecond, time.Millisecond))
			if k&1 == 1 {
				at := time.UnixMilli(int64(1000*i + k)).UTC()
				tk.ID, tk.Schedule, tk.Slot = task.SlotID("s", at), "s", at
			}
			if k&2 == 2 {
				tk.Keep = time.Hour
			}
			if k&4 == 4 {
				tk.Key, tk.KeyLimit = tk.ID, 1
			}
			if how == "late" {
				tk.Timeout = 50 * time.Millisecond
			}
			tk.Payload = []byte(how)
			all = append(all, tk)
		}
	}
	w.add(all...)
	words := func() map[history.Word]int {
		count := map[history.Word]int{}
		for _, n := range w.notes() {
			count[n.Word]++
		}
		return count
	}
	testredis.Eventually(t, patience, func() bool {
		return held.Load() == 8 && len(ran.all()) == len(w.notes())+8
	}, "all are over but those that are held")
	b := w.start(one(t, behave), common...)
	w.leads(b)
	must(t, w.rdb.ZAdd(t.Context(), w.q.Keys().Instances, redis.Z{Score: 1, Member: a.id}).Err())
	testredis.Eventually(t, patience, func() bool {
		n := words()
		return n[history.Lost] == 8 && n[history.Done] == 5*8 && len(ran.all()) == len(w.notes())
	}, "those that were held are lost, run again and end")

	began := map[string]int{}
	for _, tk := range ran.all() {
		began[runKey(tk.ID, tk.Attempt, tk.Claimed)]++
	}
	noted := map[string]int{}
	for _, n := range w.notes() {
		noted[runKey(n.TaskID, n.Attempt, n.Claimed)]++
		if n.Type != "job" || n.Queue != task.DefaultQueue || n.Due.IsZero() || n.Took == 0 && n.Word != history.Lost && n.Word != history.Cancelled {
			t.Errorf("%+v", n)
		}
		if n.Word != history.Lost && n.Output != "out of "+n.TaskID && n.Word != history.Cancelled {
			t.Errorf("%s %s put out %q", n.TaskID, n.Word, n.Output)
		}
		if slot := strings.HasPrefix(n.TaskID, "s@"); slot != (n.Schedule == "s") || slot != (n.Maker == "s") {
			t.Errorf("%+v", n)
		}
	}
	if !maps.Equal(began, noted) {
		t.Errorf("began %v\nnoted %v", began, noted)
	}
	want := map[history.Word]int{history.Done: 40, history.Failed: 24, history.Dead: 8, history.Cancelled: 8, history.Lost: 8}
	if got := words(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A run that is handed back at shutdown is noted with what it had put out by then.
func TestNotes_ofARunThatIsHandedBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	began := make(chan struct{})
	h := one(t, func(ctx context.Context, tk *task.Task) error {
		if tk.ID == "x" {
			handlers.Output(ctx, "half of it")
			close(began)
			<-ctx.Done()
		}
		return context.Cause(ctx)
	})
	a := w.start(h, archive(64), drain(10*time.Millisecond), lease(time.Minute))
	w.leads(a)
	w.add(job("x", task.Keep(-1)))
	<-began
	a.stop()
	notes := w.notes()
	if len(notes) != 1 || notes[0].Word != history.Returned || notes[0].Output != "half of it" || notes[0].TaskID != "x" || notes[0].Took == 0 {
		t.Errorf("%+v", notes)
	}
}

// A task whose record nothing can read is dead, and noted as such.
func TestNotes_ofATaskThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	w.add(job("x"), job("s@5"), job("y"))
	for _, id := range []string{"x", "s@5"} {
		must(t, w.rdb.HSet(t.Context(), w.q.Keys().Tasks, id, "1 damaged").Err())
	}
	w.start(one(t, func(context.Context, *task.Task) error { return nil }), archive(64))
	testredis.Eventually(t, patience, func() bool { return len(w.notes()) == 3 }, "all are noted")
	for _, n := range w.notes() {
		want := history.Dead
		if n.TaskID == "y" {
			want = history.Done
		}
		if n.Word != want || n.Type != "job" || n.Queue != task.DefaultQueue {
			t.Errorf("%+v", n)
		}
	}
}

// The output of a handler is kept without secrets of the payload, and is cut as the settings say. Without an archive nothing is kept.
func TestNotes_ofAnOutput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		caps queue.Caps
		want string
	}{
		{queue.Caps{Archive: 100}, "paid with *** and more"},
		{queue.Caps{Archive: 100, Output: 12}, "paid with…"},
		{queue.Caps{Archive: 100, Output: -1}, ""},
		{queue.Caps{Output: 100}, "no note"},
	} {
		w := newWorld(t, testredis.Real(t))
		w.start(one(t, func(ctx context.Context, _ *task.Task) error {
			handlers.Output(ctx, "paid with card-of-ann and more")
			return nil
		}), func(s *setup) { s.caps, s.Secret = tt.caps, map[string][]string{"job": {"card"}} })
		tk := job("x", task.Keep(-1))
		tk.Payload = []byte(`{"card":"card-of-ann"}`)
		w.add(tk)
		w.gone("x")
		got := "no note"
		if notes := w.notes(); len(notes) > 0 {
			got = notes[0].Output
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.caps, got, tt.want)
		}
	}
}
