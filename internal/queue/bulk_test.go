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

// begin begins a bulk action, and returns the task that does it.
func (w *world) begin(id, by string) *task.Task {
	w.Helper()
	_, err := w.q.BeginBulk(queue.By(w.Context(), by), queue.Bulk{ID: id, Action: "retry", Filter: []byte("{}"), About: 9}, "")
	w.must(err)
	return w.bulkTask(id)
}

// bulkTask returns the task that is to do a bulk action, or nil.
func (w *world) bulkTask(id string) *task.Task {
	w.Helper()
	page, err := w.q.List(w.Context(), task.Due, queue.ListOptions{Type: task.BulkType})
	w.must(err)
	for _, f := range page.Tasks {
		if strings.HasPrefix(f.Task.ID, task.BulkType+":"+id+":") {
			return f.Task
		}
	}
	return nil
}

// bulkClaim has a run of that fence claim a bulk action.
func (w *world) bulkClaim(id string, fence int64) (queue.Bulk, *task.Task) {
	w.Helper()
	t := w.bulkTask(id)
	t.Fence = fence
	b, ok, err := w.q.ClaimBulk(w.Context(), t)
	w.must(err)
	if !ok {
		w.Fatalf("fence %d has no bulk action %s", fence, id)
	}
	return b, t
}

func (w *world) bulk(id string) queue.Bulk {
	w.Helper()
	b, err := w.q.Bulk(w.Context(), id)
	w.must(err)
	return b
}

// silent makes a bulk action look as if its worker had noted nothing for too long.
func (w *world) silent(id string) {
	w.Helper()
	parts := strings.Split(w.rdb.HGet(w.Context(), w.keys.Bulk, id).Val(), " ")
	parts[5] = fmt.Sprint(w.now().Add(-queue.BulkSilence - time.Second).UnixMilli())
	w.must(w.rdb.HSet(w.Context(), w.keys.Bulk, id, strings.Join(parts, " ")).Err())
}

// void fails unless a worker can note nothing more.
func (w *world) void(b queue.Bulk) {
	w.Helper()
	before := w.rdb.HGetAll(w.Context(), w.keys.Bulk).Val()
	b.State, b.Changed = queue.BulkDone, 99
	held, err := w.q.NoteBulk(w.Context(), &b)
	w.must(err)
	same(w, "held", held, false)
	same(w, "what is noted", fmt.Sprint(w.rdb.HGetAll(w.Context(), w.keys.Bulk).Val()), fmt.Sprint(before))
}

// The next claim goes on from the cursor, and a void claim changes nothing.
func TestBulk_isTheNewestClaims(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		of := w.begin("a", "ann\tb")
		same(t, "begun again", w.begin("a", "ann").ID, of.ID)
		same(t, "begun", fmt.Sprintf("%s %s %d", w.bulk("a").State, w.bulk("a").By, w.bulk("a").About), "waiting ann b 9")
		first, run := w.bulkClaim("a", 5)
		first.Matched, first.Changed, first.Unreadable, first.Cursor = 3, 2, 1, "dead.x"
		held, err := w.q.NoteBulk(t.Context(), &first)
		same(t, "held", fmt.Sprint(held, err), "true <nil>")
		second, _ := w.bulkClaim("a", 6)
		same(t, "what the next one has", fmt.Sprintf("%d %d %d %s %s", second.Matched, second.Changed, second.Unreadable, second.Cursor, second.State), "3 2 1 dead.x running")
		w.void(first)
		if _, ok, err := w.q.ClaimBulk(t.Context(), run); ok || err != nil {
			t.Errorf("an earlier fence claims it: %v, %v", ok, err)
		}

		_, err = w.q.StopBulk(queue.By(t.Context(), "bob"), "a")
		w.must(err)
		second.Changed, second.Cursor = 7, "dead.z" // of the page that it was at
		held, err = w.q.NoteBulk(t.Context(), &second)
		same(t, "stopped", fmt.Sprintf("%t %v %s %s", held, err, second.State, second.Said), "true <nil> stopped bob")
		_, err = w.q.ResumeBulk(t.Context(), "a", "")
		w.must(err)
		w.void(second)
		third, _ := w.bulkClaim("a", 7)
		same(t, "resumed", fmt.Sprintf("%d %s%s", third.Changed, third.Cursor, third.Said), "7 dead.z")
		third.State = queue.BulkDone
		for range 2 { // the reply to the first call was lost
			held, err = w.q.NoteBulk(t.Context(), &third)
			same(t, "done", fmt.Sprintf("%t %v %s", held, err, third.State), "true <nil> done")
		}
		late := third
		late.State = queue.BulkRunning
		held, err = w.q.NoteBulk(t.Context(), &late)
		same(t, "a call that came late", fmt.Sprintf("%t %v %s", held, err, w.bulk("a").State), "false <nil> done")
		if _, err := w.q.StopBulk(t.Context(), "a"); err != nil || w.bulk("a").State != queue.BulkDone {
			t.Errorf("one that is done was stopped: %v", err)
		}
		var told []string
		list, err := w.q.Events(t.Context(), time.Time{}, 100)
		w.must(err)
		for _, e := range list {
			if strings.HasPrefix(e.Kind, "bulk ") {
				told = append(told, e.Kind+" "+e.Fields["changed"]+" "+e.Fields["by"])
			}
		}
		same(t, "events", strings.Join(told, ", "), "bulk begun  ann b, bulk stopped 2 bob, bulk begun  , bulk done 7 ann b")
	})
}

// A bulk action never waits for a worker that is gone: it counts as stopped or failed, goes on, and is no longer in the way.
func TestBulk_withoutAWorkerGoesOn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		w.begin("a", "ann")
		claimed, run := w.bulkClaim("a", 1)
		w.silent("a")
		same(t, "while its task is there", w.bulk("a").State, queue.BulkWaiting)
		w.must(w.rdb.ZAdd(ctx, w.keys.Dead, redis.Z{Score: 1, Member: run.ID}).Err())
		same(t, "when its task is dead", w.bulk("a").State, queue.BulkFailed)
		_, err := w.q.Cancel(ctx, run.ID, "by hand", true)
		w.must(err)
		same(t, "when its task was deleted", w.bulk("a").State, queue.BulkStopped)
		_, err = w.q.ResumeBulk(ctx, "a", "")
		w.must(err)
		w.void(claimed)
	})
}

func TestPromise10_bulksAreBounded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		begin := func(by string, filter string) error {
			_, err := w.q.BeginBulk(queue.By(ctx, by), queue.Bulk{Action: "retry", Filter: []byte(filter)}, "")
			return err
		}
		stop := func(id string) {
			_, err := w.q.StopBulk(ctx, id)
			w.must(err)
		}
		for i := range 64 {
			w.begin(fmt.Sprint("open", i), fmt.Sprint("by", i/16))
		}
		if err := begin("other", "{}"); !errors.Is(err, queue.ErrBulks) {
			t.Errorf("a 65th: %v", err)
		}
		stop("open0")
		if err := begin("by1", "{}"); !errors.Is(err, queue.ErrBulks) {
			t.Errorf("a 17th of one sender: %v", err)
		}
		w.must(begin("by0", "{}"))
		if _, err := w.q.ResumeBulk(ctx, "open0", ""); !errors.Is(err, queue.ErrBulks) {
			t.Errorf("a 65th that goes on: %v", err)
		}
		for i := range 64 {
			stop(fmt.Sprint("open", i))
		}
		for i := range 60 {
			id := fmt.Sprint("more", i)
			w.begin(id, "x")
			stop(id)
		}
		w.must(w.rdb.HSet(ctx, w.keys.Bulk, "damaged", "running x").Err())
		w.must(begin("x", "{}"))
		same(t, "with what is damaged", rdb.HLen(ctx, w.keys.Bulk).Val(), 100)
		if left := rdb.PTTL(ctx, w.keys.Bulk).Val(); left <= 0 || left > queue.BulkKept {
			t.Errorf("they expire in %v", left)
		}
		if err := begin("x", strings.Repeat("x", 5000)); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a long one: %v", err)
		}
	})
}
