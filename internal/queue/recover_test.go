package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// recoveries turns what a generation held into what becomes of it.
func (w *world) recoveries(gen int64) []queue.Recovery {
	w.Helper()
	held, _, err := w.q.Claims(w.Context(), gen, "")
	w.must(err)
	var list []queue.Recovery
	for _, c := range held {
		t := *c.Task
		t.Fail(task.Failure{At: t.Claimed, Attempt: t.Attempt, Error: "lost"})
		list = append(list, queue.Recovery{
			Claim: c, Lane: queue.LaneOf(&t), Dead: t.Attempts >= t.AttemptsAllowed(), Record: queue.Rewrite(&t),
			Note: fmt.Sprintf("%s lost %d %d", t.ID, t.Attempt, t.Claimed.UnixMilli()),
		})
	}
	return list
}

func TestRecover_refusesTheLiving(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"))
		x := a.claim(1, lanesOf("job"))
		if _, _, err := w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen)); !errors.Is(err, queue.ErrAlive) {
			t.Fatalf("recover a living generation: %v, want ErrAlive", err)
		}
		same(t, "void", len(a.cycle(0, nil, allFinished(x)...).Void), 0)
	})
}

func TestRecover_givesTasksAndLimitsBack(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		lanes := lanesOf("job", "limited")
		lanes[1].Limit = 2
		w.add(keyed("k1", "k", 1, task.Wait, 1), keyed("k2", "k", 1, task.Wait, 2), job("last", task.MaxAttempts(1)),
			task.New("limited", nil, task.ID("l1")), task.New("limited", nil, task.ID("l2")))
		same(t, "claimed", len(a.cycle(10, lanes).Claimed), 4)
		b := w.join("b")
		a.lose(b)
		equal(t, "orphans", b.beat().Orphans, []int64{a.gen})
		list := w.recoveries(a.gen)
		moved, left, err := w.q.Recover(t.Context(), a.gen, list)
		w.must(err)
		same(t, "moved and left", fmt.Sprint(moved, left), "4 0")
		same(t, "dead", w.score(w.keys.Dead, "last") > 0, true)
		same(t, "died", w.meta("died"), "1")
		same(t, "notes", len(w.notes()), 4)
		same(t, "active", w.count(w.keys.Active), 0)
		same(t, "held", w.count(w.keys.Held), 0)
		same(t, "orphans", w.count(w.keys.Orphans), 0)
		got := b.cycle(10, lanes).Claimed
		equal(t, "claimed by another", sortedIDs(got), []string{"k1", "l1", "l2"})
		for _, x := range got {
			if x.Attempt != 2 || x.LastError() != "lost" {
				t.Errorf("%s: attempt %d, error %q", x.ID, x.Attempt, x.LastError())
			}
		}
		if _, _, err := w.q.Recover(t.Context(), a.gen, list); !errors.Is(err, queue.ErrAlive) {
			t.Errorf("a second time: %v, want ErrAlive", err)
		}
	})
}

func TestRecover_forgetsAGenerationThatHeldNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		a.cycle(1, lanesOf("job"))
		b := w.join("b")
		a.lose(b)
		moved, left, err := w.q.Recover(t.Context(), a.gen, nil)
		w.must(err)
		same(t, "moved and left", fmt.Sprint(moved, left), "0 0")
		same(t, "orphans", w.count(w.keys.Orphans), 0)
		same(t, "running", rdb.Exists(t.Context(), w.keys.Running(a.gen)).Val(), 0)
	})
}

// Promise 4: a claim by an instance declared dead is void.
func TestPromise4_aClaimOfTheDeadIsVoid(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"), job("y"))
		old := a.claim(2, lanesOf("job"))
		b := w.join("b")
		a.lose(b)
		settle := allFinished(old)
		if _, err := w.q.Cycle(t.Context(), a.request(0, nil, settle...)); !errors.Is(err, queue.ErrFenced) {
			t.Fatalf("settled by the dead: %v, want ErrFenced", err)
		}
		_, _, err := w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen))
		w.must(err)

		// It comes back under its name, as a new generation, and still believes in its claims.
		a2 := w.join("a")
		r := a2.cycle(1, lanesOf("job"), settle...)
		same(t, "void", len(r.Void), 2)
		same(t, "records", w.count(w.keys.Tasks), 2)

		// Even one that runs the same task again does not settle it by the old claim.
		again := r.Claimed[0]
		if again.Fence <= old[0].Fence {
			t.Fatalf("fence %d after %d", again.Fence, old[0].Fence)
		}
		r = a2.cycle(0, lanesOf("job"), settle...)
		same(t, "void", len(r.Void), 2)
		same(t, "void by the new claim", len(a2.cycle(0, nil, finished(again)).Void), 0)
	})
}

func TestRecover_eachTaskMovesOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const n = 2500
		w.add(jobs("j", n)...)
		for claimed := 0; claimed < n; {
			claimed += len(a.cycle(queue.MaxBatch, lanesOf("job")).Claimed)
		}
		b := w.join("b")
		a.lose(b)
		list := w.recoveries(a.gen)
		same(t, "held", len(list), n)
		var wg sync.WaitGroup
		moved := make([]int, 4)
		for i := range moved {
			wg.Go(func() {
				m, _, err := w.q.Recover(t.Context(), a.gen, list)
				if err != nil && !errors.Is(err, queue.ErrAlive) {
					t.Error(err)
				}
				moved[i] = m
			})
		}
		wg.Wait()
		same(t, "moved", moved[0]+moved[1]+moved[2]+moved[3], n)
		same(t, "due", w.count(w.keys.Due(lane("job"))), n)
		same(t, "notes", len(w.notes()), n)
	})
}

func TestRecover_wakesWhoeverWatches(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"))
		a.claim(1, lanesOf("job"))
		b := w.join("b")
		a.lose(b)
		b.cycle(1, lanesOf("job"))
		w.must(rdb.HDel(t.Context(), w.keys.Lanes, lane("job").String()).Err())
		_, _, err := w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen))
		w.must(err)
		if s := w.score(w.keys.Watch, "b"); s > float64(time.Now().Add(time.Minute).UnixMilli()) {
			t.Errorf("b watches %v", s)
		}
		lanes, _, err := w.q.Lanes(t.Context())
		w.must(err)
		same(t, "lanes", len(lanes), 1)
	})
}
