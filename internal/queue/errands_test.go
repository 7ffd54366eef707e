package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func (w *world) begin(id, by string) {
	w.Helper()
	_, err := w.q.BeginErrand(queue.By(w.Context(), by), id, []byte(`{"action":"retry"}`))
	w.must(err)
}

func (w *world) take() (queue.Errand, bool) {
	w.Helper()
	e, ok, err := w.q.TakeErrand(w.Context())
	w.must(err)
	return e, ok
}

func (w *world) errand(id string) queue.Errand {
	w.Helper()
	e, err := w.q.Errand(w.Context(), id)
	w.must(err)
	return e
}

// silence makes an errand look as if its worker had noted nothing for that long.
func (w *world) silence(id string, d time.Duration) {
	w.Helper()
	parts := strings.Split(w.rdb.HGet(w.Context(), w.keys.Errands, id).Val(), " ")
	parts[3] = fmt.Sprint(w.now().Add(-d).UnixMilli())
	w.must(w.rdb.HSet(w.Context(), w.keys.Errands, id, strings.Join(parts, " ")).Err())
}

func TestErrand_isOneWorkersAtATime(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		if _, ok := w.take(); ok {
			t.Error("there is one before one was begun")
		}
		w.begin("a", "ann\tb")
		w.begin("a", "ann\tb") // its answer was lost
		same(t, "begun", w.errand("a").State, queue.ErrandWaiting)
		first, ok := w.take()
		if !ok || first.ID != "a" || first.By != "ann b" || string(first.Asked) != `{"action":"retry"}` || first.State != queue.ErrandRunning {
			t.Fatalf("%v %+v", ok, first)
		}
		if _, ok := w.take(); ok {
			t.Error("two have it")
		}
		first.Matched, first.Changed, first.Unreadable, first.Cursor = 3, 2, 1, "dead.x\ty"
		held, err := w.q.NoteErrand(t.Context(), &first)
		same(t, "held", fmt.Sprint(held, err), "true <nil>")
		if got := w.errand("a"); got.Matched != 3 || got.Changed != 2 || got.Unreadable != 1 || got.Cursor != first.Cursor || got.State != queue.ErrandRunning {
			t.Errorf("%+v", got)
		}

		w.silence("a", queue.ErrandSilence+time.Second)
		same(t, "of a silent worker", w.errand("a").State, queue.ErrandWaiting)
		second, ok := w.take()
		if !ok || second.Cursor != first.Cursor || second.Changed != 2 {
			t.Fatalf("%v %+v", ok, second)
		}
		first.Changed = 99
		held, err = w.q.NoteErrand(t.Context(), &first)
		same(t, "held by the first", fmt.Sprint(held, err), "false <nil>")
		same(t, "what the first noted late", w.errand("a").Changed, 2)

		second.State = queue.ErrandWaiting // it leaves
		_, err = w.q.NoteErrand(t.Context(), &second)
		w.must(err)
		third, ok := w.take()
		same(t, "taken at once", ok, true)
		third.State = queue.ErrandDone
		_, err = w.q.NoteErrand(t.Context(), &third)
		w.must(err)
		if _, ok := w.take(); ok {
			t.Error("one that is done is worked on")
		}
	})
}

// A failover may lose that an errand was taken. Then another takes it, and the one before does not share its turn.
func TestErrand_isOneWorkersAlsoIfItsTakingIsLost(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.begin("a", "ann")
		before := w.rdb.HGet(t.Context(), w.keys.Errands, "a").Val()
		first, _ := w.take()
		w.must(w.rdb.HSet(t.Context(), w.keys.Errands, "a", before).Err())
		for at := w.now(); !w.now().After(at.Add(time.Millisecond)); {
			time.Sleep(time.Millisecond)
		}
		if _, ok := w.take(); !ok {
			t.Fatal("nobody goes on with it")
		}
		first.State = queue.ErrandDone
		held, err := w.q.NoteErrand(t.Context(), &first)
		same(t, "held by the first", fmt.Sprint(held, err), "false <nil>")
		same(t, "state", w.errand("a").State, queue.ErrandRunning)
	})
}

func TestErrand_isStoppedAndGoesOn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		w.begin("a", "ann")
		e, _ := w.take()
		w.must(w.q.StopErrand(queue.By(ctx, "bob"), "a"))
		same(t, "stopped", w.errand("a").State, queue.ErrandStopped)
		same(t, "by", w.errand("a").Said, "bob")
		e.Changed, e.Cursor = 7, "dead.z" // of the page that it was at
		held, err := w.q.NoteErrand(ctx, &e)
		same(t, "held", fmt.Sprint(held, err, e.State), "true <nil>stopped")
		same(t, "what it had done", w.errand("a").Changed, 7)
		if _, ok := w.take(); ok {
			t.Error("a stopped one is worked on")
		}
		w.must(w.q.ResumeErrand(ctx, "a"))
		again, ok := w.take()
		if !ok || again.Cursor != "dead.z" || again.Changed != 7 || again.Said != "" {
			t.Errorf("%v %+v", ok, again)
		}
		held, err = w.q.NoteErrand(ctx, &e)
		same(t, "held by the first", fmt.Sprint(held, err), "false <nil>")

		again.State, again.Said = queue.ErrandDone, ""
		w.must(w.q.StopErrand(ctx, "a")) // while it did its last page
		_, err = w.q.NoteErrand(ctx, &again)
		w.must(err)
		w.must(w.q.StopErrand(ctx, "a"))
		w.must(w.q.ResumeErrand(ctx, "a"))
		same(t, "at last", w.errand("a").State, queue.ErrandDone)
		for _, err := range []error{w.q.StopErrand(ctx, "none"), w.q.ResumeErrand(ctx, "none")} {
			if !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestPromise10_errandsAreBounded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		for i := range 16 {
			w.begin(fmt.Sprint("open", i), fmt.Sprint("by", i/4))
		}
		_, err := w.q.BeginErrand(queue.By(ctx, "other"), "", []byte("{}"))
		if !errors.Is(err, queue.ErrErrands) {
			t.Errorf("a 17th: %v", err)
		}
		w.must(w.q.StopErrand(ctx, "open0"))
		if _, err := w.q.BeginErrand(queue.By(ctx, "by1"), "", []byte("{}")); !errors.Is(err, queue.ErrErrands) {
			t.Errorf("a fifth of one sender: %v", err)
		}
		w.begin("more", "by0")
		if err := w.q.ResumeErrand(ctx, "open0"); !errors.Is(err, queue.ErrErrands) {
			t.Errorf("a 17th that goes on: %v", err)
		}
		for i := range 16 {
			w.must(w.q.StopErrand(ctx, fmt.Sprint("open", i)))
		}
		for i := range 120 {
			id := fmt.Sprint("more", i)
			w.begin(id, "x")
			w.must(w.q.StopErrand(ctx, id))
		}
		w.must(w.rdb.HSet(ctx, w.keys.Errands, "damaged", "running x").Err())
		w.begin("last", "x")
		list, err := w.q.Errands(ctx)
		w.must(err)
		same(t, "those that are kept", len(list), 100)
		same(t, "with what is damaged", rdb.HLen(ctx, w.keys.Errands).Val(), 100)
		if left := rdb.PTTL(ctx, w.keys.Errands).Val(); left <= 0 || left > queue.ErrandsKept {
			t.Errorf("they expire in %v", left)
		}
		if _, err := w.q.BeginErrand(ctx, "", []byte(strings.Repeat("x", 5000))); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a long one: %v", err)
		}
	})
}
