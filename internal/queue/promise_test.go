package queue_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// places finds, for each member of any place, the places it is in.
func (w *world) places(gens map[int64]bool) map[string][]string {
	w.Helper()
	ctx := w.Context()
	in := map[string][]string{}
	put := func(place string, members []string) {
		for _, m := range members {
			in[m] = append(in[m], place)
		}
	}
	lanes, _, err := w.q.Lanes(ctx)
	w.must(err)
	for _, l := range lanes {
		put("due", w.rdb.ZRange(ctx, w.keys.Due(l), 0, -1).Val())
	}
	for _, m := range w.rdb.ZRange(ctx, w.keys.Held, 0, -1).Val() {
		put("held", []string{m[strings.LastIndexByte(m, 0x1f)+1:]})
	}
	for gen := range gens {
		for _, id := range w.rdb.HKeys(ctx, w.keys.Running(gen)).Val() {
			if id != "" {
				put("running", []string{id})
			}
		}
	}
	put("dead", w.rdb.ZRange(ctx, w.keys.Dead, 0, -1).Val())
	put("done", w.rdb.ZRange(ctx, w.keys.Done, 0, -1).Val())
	return in
}

// checkPlaces verifies that each task is in exactly one place and has a record, that each record has a task, and that
// the limits count what runs.
func (w *world) checkPlaces(gens map[int64]bool) {
	w.Helper()
	records := w.rdb.HGetAll(w.Context(), w.keys.Tasks).Val()
	running := map[string]int{}
	in := w.places(gens)
	for id, places := range in {
		rec, ok := records[id]
		if len(places) != 1 || !ok {
			w.Fatalf("task %s: in %v, has a record: %v", id, places, ok)
		}
		t := task.Task{ID: id}
		w.must(task.Decode(rec, &t))
		if places[0] == "running" && t.Key != "" {
			running["k:"+t.Key]++
			if t.Overlap == task.Behind {
				running["b:"+t.Key]++
			}
		}
		if places[0] == "running" && t.Type == "limited" {
			running["t:limited"]++
		}
	}
	for id := range records {
		if len(in[id]) == 0 {
			w.Fatalf("task %s has a record and is nowhere", id)
		}
	}
	active := w.rdb.HGetAll(w.Context(), w.keys.Active).Val()
	for name, n := range running {
		if active[name] != fmt.Sprint(n) {
			w.Fatalf("%s: %s are counted, %d run", name, active[name], n)
		}
		delete(active, name)
	}
	if len(active) > 0 {
		w.Fatalf("counted and not running: %v", active)
	}
}

// Promise 3: a task is in one place: due, running, dead or done, whatever happens in whatever order.
func TestPromise3_aTaskIsInOnePlace(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for seed := range uint64(8) {
			w := newWorld(t, rdb, queue.Caps{Dead: 5, Done: 5})
			walk(w, rand.New(rand.NewPCG(seed, 1)), 120)
		}
	})
}

// walk does random things, and checks after each.
func walk(w *world, rnd *rand.Rand, steps int) {
	w.Helper()
	ctx := w.Context()
	lanes := lanesOf("job", "limited")
	lanes[1].Limit = 3
	gens := map[int64]bool{}
	var all []*inst
	join := func() {
		i := w.join(fmt.Sprint("i", len(gens)), consume("all"))
		gens[i.gen] = true
		all = append(all, i)
	}
	join()
	join()
	var claims []*task.Task // also those that are not held any more
	slots, n := w.schedule("s"), 0
	for range steps {
		by := all[rnd.IntN(len(all))]
		switch rnd.IntN(9) {
		case 0, 1:
			var list []*task.Task
			for range rnd.IntN(6) {
				x := task.New([]string{"job", "limited"}[rnd.IntN(2)], nil, task.ID(fmt.Sprint("t", rnd.IntN(60))))
				if rnd.IntN(2) == 0 {
					x.Apply(task.Key(fmt.Sprint("k", rnd.IntN(3)), 1+rnd.IntN(2)))
					x.Overlap = []task.Overlap{task.Wait, task.Skip, task.QueueUp, task.Replace, task.Behind}[rnd.IntN(5)]
				}
				list = append(list, x)
			}
			_, _, err := w.q.Enqueue(ctx, list, true)
			w.must(err)
		case 2, 3, 4:
			var settle []queue.Settlement
			seen := map[string]bool{}
			for range rnd.IntN(5) {
				if len(claims) > 0 {
					x := claims[rnd.IntN(len(claims))]
					if !seen[x.ID] {
						settle = append(settle, queue.Settlement{
							ID: x.ID, Fence: x.Fence, Outcome: queue.Outcome(rnd.IntN(4)), Lane: queue.LaneOf(x),
							Keep: time.Duration(rnd.IntN(20)) * time.Millisecond, Record: queue.Rewrite(x),
						})
					}
					seen[x.ID] = true
				}
			}
			claims = append(claims, by.cycle(rnd.IntN(5), lanes, settle...).Claimed...)
		case 5:
			if rnd.IntN(3) == 0 {
				join()
			} else if len(all) > 1 {
				last := all[len(all)-1]
				dead := rnd.IntN(len(all) - 1)
				all[dead].lose(last)
				_, _, err := w.q.Recover(ctx, all[dead].gen, w.recoveries(all[dead].gen))
				w.must(err)
				all = append(all[:dead], all[dead+1:]...)
			}
		case 6:
			w.cancel(fmt.Sprint("t", rnd.IntN(60)), rnd.IntN(2) == 0)
		case 7:
			p, err := w.q.List(ctx, task.Dead, queue.ListOptions{})
			w.must(err)
			for _, f := range p.Tasks[:min(len(p.Tasks), 2)] {
				_, err := w.q.Revive(ctx, []*task.Task{f.Task})
				w.must(err)
			}
		case 8:
			if leader := all[len(all)-1]; leader.epoch != 0 {
				n++
				leader.advance(step("s", slots, ms(int64(n))))
				slots = w.last("s")
			}
			_, err := w.q.Tidy(ctx, 5*time.Second)
			w.must(err)
		}
		w.checkPlaces(gens)
	}
}

// Promise 6: Redis is the clock. Nothing runs early, whatever the clients' clocks say: no script is told their time.
func TestPromise6_nothingIsEarly(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const n = 200
		var list []*task.Task
		start := w.now()
		for i := range n {
			x := job(fmt.Sprint("j", i), task.In(time.Duration(i)*time.Millisecond+time.Duration(i)*time.Microsecond))
			if i%2 == 0 {
				x.Due, x.Delay = start.Add(x.Delay), 0 // between two milliseconds
			}
			list = append(list, x)
		}
		w.add(list...)
		for claimed := 0; claimed < n; {
			r := a.cycle(7, lanesOf("job"))
			for _, x := range r.Claimed {
				var i int
				_, err := fmt.Sscanf(x.ID, "j%d", &i)
				w.must(err)
				early := start.Add(time.Duration(i) * (time.Millisecond + time.Microsecond)).Sub(r.Now)
				if x.Due.After(r.Now) || early > 0 {
					t.Fatalf("%s is due %v and was claimed %v: %v early", x.ID, x.Due, r.Now, early)
				}
			}
			claimed += len(r.Claimed)
			if len(r.Claimed) == 0 && !r.NextDue.After(r.Now.Truncate(time.Millisecond)) {
				t.Fatalf("nothing claimed at %v, next due %v", r.Now, r.NextDue)
			}
		}
	})
}

// Many claim, settle and add at once: each task is had exactly once.
func TestConcurrently_eachTaskIsClaimedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	const instances, batches, each = 8, 30, 50
	var members []*inst
	for i := range instances {
		members = append(members, w.join(fmt.Sprint("i", i), consume("all")))
	}
	var mu sync.Mutex
	had := map[string]int{}
	total := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(had)
	}
	ctx := t.Context()
	var wg sync.WaitGroup
	for b := range 3 {
		wg.Go(func() {
			for i := range batches {
				if _, _, err := w.q.Enqueue(ctx, jobs(fmt.Sprintf("%d-%d-", b, i), each), true); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, m := range members {
		wg.Go(func() {
			lanes := lanesOf("job")
			var settle []queue.Settlement
			for range 10_000 {
				r, err := w.q.Cycle(ctx, m.request(20, lanes, settle...))
				if err != nil || len(r.Void) > 0 {
					t.Error(err, "void:", r)
					return
				}
				mu.Lock()
				for _, x := range r.Claimed {
					had[x.ID]++
				}
				mu.Unlock()
				settle = allFinished(r.Claimed)
				if len(settle) == 0 && total() == 3*batches*each {
					return
				}
			}
		})
	}
	wg.Wait()
	for id, n := range had {
		if n != 1 {
			t.Errorf("%s was had %d times", id, n)
		}
	}
	same(t, "had", len(had), 3*batches*each)
	same(t, "left", w.count(w.keys.Tasks), 0)
	same(t, "done", w.meta("done"), fmt.Sprint(3*batches*each))
}
