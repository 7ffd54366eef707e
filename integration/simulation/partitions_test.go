package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// splitWorld is a namespace of one to four partitions, with processes that come and go.
type splitWorld struct {
	*world
	rng     *rand.Rand
	parts   int
	consume instance.Consume
	release int
	procs   []*splitProcess
	faulty  bool // a fault happened that may cost a run

	mu    sync.Mutex
	runs  map[string]int // by task
	takes *rand.Rand     // how long runs take
}

type splitProcess struct {
	link *link
	stop context.CancelFunc
	done chan struct{}
}

const splitSchedules = 10

// up starts a process of a release.
func (w *splitWorld) up() *splitProcess {
	p := &splitProcess{link: newLink(w.redis, w.rng.Uint64(), time.Millisecond), done: make(chan struct{})}
	rdb := w.dial(p.link)
	rdb.Options().MaxRetries = 0
	d, err := onbeat.New(rdb, onbeat.Config{
		Namespace: namespace, Partitions: w.parts, Release: fmt.Sprint("v", w.release), Lease: 3 * time.Second, Consume: w.consume,
		Concurrency: 1 + w.rng.IntN(8), Drain: 5 * time.Second, Log: zerolog.Nop(),
	})
	if err == nil {
		err = d.Handle("work", handlers.Func(func(ctx context.Context, t *task.Task) error {
			w.mu.Lock()
			w.runs[t.ID]++
			takes := time.Duration(w.takes.Int64N(int64(200 * time.Millisecond)))
			w.mu.Unlock()
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}
	for i := range splitSchedules {
		rule := schedule.Every(time.Duration(i+1) * 500 * time.Millisecond)
		rule.Missed = schedule.MissedAll
		err = errors.Join(err, d.Schedule(fmt.Sprint("s", i), rule, "work", nil))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.done)
		if err := d.Run(ctx); err != nil && !errors.Is(err, task.ErrUnreachable) {
			w.t.Error(err)
		}
		_ = rdb.Close()
	}()
	w.procs = append(w.procs, p)
	return p
}

// down takes a process away: in order, or as if it was killed.
func (w *splitWorld) down(i int, killed bool) {
	p := w.procs[i]
	w.procs = append(w.procs[:i:i], w.procs[i+1:]...)
	if killed {
		w.faulty = true
		p.link.kill()
	}
	p.stop()
	if !killed {
		<-p.done
	}
}

// step does something that happens to a fleet.
func (w *splitWorld) step() {
	pick := func() int { return w.rng.IntN(len(w.procs)) }
	switch what := w.rng.IntN(8); {
	case what < 2 && len(w.procs) < 4:
		w.up()
	case what == 2: // a rollout
		w.release++
		old := len(w.procs)
		w.up()
		time.Sleep(2 * time.Second)
		for range old {
			w.down(0, false)
		}
	case what == 3 && len(w.procs) > 1:
		w.down(pick(), false)
	case what == 4 && len(w.procs) > 1:
		w.down(pick(), true)
	case what == 5:
		w.faulty = true
		p := w.procs[pick()]
		p.link.set(func(l *link) { l.dropUp, l.dropDown = true, true })
		time.Sleep(time.Duration(1+w.rng.IntN(8)) * time.Second)
		p.link.set(func(l *link) { l.dropUp, l.dropDown = false, false })
	case what == 6:
		w.faulty = true
		w.redis.leave()
		time.Sleep(time.Duration(1+w.rng.IntN(5)) * time.Second)
		w.redis.comeBack()
	}
}

// Namespaces of one to four partitions under rollouts, kills, cut networks and a Redis that is away, in virtual time: each slot runs, none
// is off the grid, and none runs twice unless a fault cost a run. Each task of a caller runs, too.
func TestPartitions_underRandomFaults(t *testing.T) {
	t.Parallel()
	seeds := 4
	if testredis.Soak() {
		seeds = 200
	}
	if slow {
		seeds = 3
	}
	first := uint64(time.Now().UnixNano())
	for i := range seeds {
		seed := first + uint64(i)
		if *seedFlag != 0 {
			seed = *seedFlag + uint64(i)
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playSplit(t, seed) })
		})
	}
}

func playSplit(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &splitWorld{
		world: &world{t: t, plan: &plan{}, redis: newVirtualRedis(t), began: time.Now()}, rng: rng, parts: 1 + int(seed%4), runs: map[string]int{}, release: 1, takes: rand.New(rand.NewPCG(seed, 8)),
		consume: []instance.Consume{instance.ConsumeNewest, instance.ConsumeRelease, instance.ConsumeAll}[rng.IntN(3)],
	}
	calls := newLink(w.redis, seed, time.Millisecond)
	rdb := w.dial(calls)
	defer rdb.Close()
	caller, err := onbeat.New(rdb, onbeat.Config{Namespace: namespace, Partitions: w.parts})
	if err != nil {
		t.Fatal(err)
	}
	w.up()
	added := map[string]bool{}
	for i := range 40 {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		w.step()
		if len(w.procs) == 0 {
			w.up()
		}
		list := make([]*task.Task, 1+rng.IntN(20))
		for k := range list {
			list[k] = task.New("work", nil)
			switch rng.IntN(4) {
			case 0:
				list[k].Key = fmt.Sprint("key", rng.IntN(5))
			case 1:
				list[k].ID = fmt.Sprintf("own-%d-%d", i, k)
			case 2:
				list[k].UniqueKey, list[k].UniqueFor = fmt.Sprintf("u-%d-%d", i, k), time.Minute
			}
		}
		results, _ := caller.EnqueueAll(t.Context(), list) // a task that failed may have been added all the same
		for _, r := range results {
			if r.Err == nil {
				added[r.ID] = true
			}
		}
	}
	w.release++
	w.up()
	time.Sleep(90 * time.Second)
	judgeSplit(t, w, caller, added)
	for len(w.procs) > 0 {
		w.down(0, false)
	}
	time.Sleep(10 * time.Second) // those that were killed end
}

func judgeSplit(t *testing.T, w *splitWorld, caller *onbeat.Dispatcher, added map[string]bool) {
	t.Helper()
	found, err := caller.Admin().Activity.Audit(t.Context(), audit.Options{Since: time.Since(w.began)})
	if err != nil || len(found.Schedules) != splitSchedules {
		t.Fatalf("%d schedules: %v", len(found.Schedules), err)
	}
	for _, r := range found.Schedules {
		for verdict, n := range r.Counts {
			switch verdict {
			case audit.OnTime, audit.Late, audit.Pending, audit.Running:
			default:
				t.Errorf("%d partitions: %s: %d slots %s", w.parts, r.Schedule, n, verdict)
			}
		}
		if r.Slots < 20 {
			t.Errorf("%s has %d slots", r.Schedule, r.Slots)
		}
	}
	s, err := caller.Admin().Activity.Status(t.Context()) // before the lock: a handler that waited for it would stop the bubble's clock
	if err != nil || s.Counts.Bad > 0 || len(s.CouldNotAsk) > 0 {
		t.Errorf("%+v %v", s, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range added {
		if w.runs[id] == 0 {
			t.Errorf("%d partitions: task %s never ran", w.parts, id)
		}
	}
	for id, n := range w.runs {
		if n > 1 && !w.faulty {
			t.Errorf("%d partitions: %s ran %d times, and nothing went wrong", w.parts, id, n)
		}
	}
	if len(added) < 100 {
		t.Errorf("%d tasks were added", len(added))
	}
}
