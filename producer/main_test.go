package producer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const patience = 30 * time.Second

// world is one namespace of a Redis, in which nothing consumes: pushed tasks stay.
type world struct {
	testing.TB
	*Schedules
	rdb redis.UniversalClient
	ns  string
	reg *instance.Registry
	p   *Producer
}

func newWorld(t testing.TB, rdb redis.UniversalClient) *world {
	t.Helper()
	return worldIn(t, rdb, testredis.Namespace(t))
}

func worldIn(t testing.TB, rdb redis.UniversalClient, ns string) *world {
	t.Helper()
	part := queue.Partition{Namespace: ns}
	q, err := queue.New(rdb, part, queue.Caps{})
	must(t, err)
	reg, err := instance.NewRegistry(rdb, part.Namespace)
	must(t, err)
	p, err := New(q.Client(), ns, Config{})
	must(t, err)
	return &world{TB: t, rdb: rdb, ns: ns, reg: reg, p: p, Schedules: NewSchedules(p, nil)}
}

// lead registers an instance, which is then the newest, and begins its term by hand.
func (w *world) lead(id, release string, declared func() []Schedule) *term {
	w.Helper()
	return w.leadOver(w.q, id, release, declared)
}

func (w *world) leadOver(q *queue.Queue, id, release string, declared func() []Schedule) *term {
	w.Helper()
	ctx := context.Background()
	gen, _, _, err := w.reg.Register(ctx, instance.Config{ID: id, Release: release, Lease: time.Minute}, instance.Past{})
	must(w, err)
	v, err := w.reg.Ready(ctx, id, gen, instance.DefaultLease)
	must(w, err)
	s, err := NewScheduler(q.Client(), w.ns, SchedulerConfig{Horizon: 400 * time.Millisecond, Declared: declared})
	must(w, err)
	return &term{
		Scheduler: s, session: &instance.Session{Release: release}, open: v.Open, back: v.Back,
		term: queue.Term{Instance: id, Gen: gen, Epoch: v.Epoch},
	}
}

// apply makes or changes a schedule by hand.
func (w *world) apply(name string, r schedule.Rule) {
	w.Helper()
	_, err := w.Apply(context.Background(), Schedule{Name: name, Rule: r, Task: "job"})
	must(w, err)
}

func (w *world) now() time.Time {
	w.Helper()
	now, err := w.q.Now(context.Background())
	must(w, err)
	return now
}

// pushed are the slots of a schedule that lie in Redis as tasks.
func (w *world) pushed(name string) map[int64]bool {
	w.Helper()
	ids, err := w.rdb.HKeys(context.Background(), w.q.Keys().Tasks).Result()
	must(w, err)
	slots := map[int64]bool{}
	for _, id := range ids {
		if of, slot, ok := task.ParseSlotID(id); ok && of == name {
			slots[slot.UnixMilli()] = true
		}
	}
	return slots
}

func (w *world) notes(name string) (list []history.Note) {
	w.Helper()
	must(w, w.q.History(context.Background(), time.Time{}, func(e history.Entry) error {
		for _, n := range e.Notes {
			if n.Schedule == name && n.Word != "was" {
				list = append(list, n)
			}
		}
		return nil
	}))
	return list
}

// account fails unless each slot from the anchor to the last run was either pushed or noted, or the schedule is behind
// with it, and once.
func (w *world) account(name string) (pushed, noted int) {
	w.Helper()
	st, err := w.q.Schedule(context.Background(), name)
	must(w, err)
	e, err := newEntry(st)
	must(w, err)
	seen := map[int64]string{}
	mark := func(ms int64, what string) {
		if was := seen[ms]; was != "" {
			w.Errorf("%s@%d: %s, and %s", name, ms, was, what)
		}
		seen[ms] = what
	}
	for ms := range w.pushed(name) {
		mark(ms, "pushed")
		pushed++
	}
	for _, n := range w.notes(name) {
		what := fmt.Sprint(n.Word, " ", n.Why)
		if n.TaskID != "" {
			mark(n.Slot.UnixMilli(), what)
			noted++
			continue
		}
		count := int64(0)
		for slot := range e.grid.Between(n.From.Add(-time.Nanosecond), n.To) {
			mark(slot.UnixMilli(), what)
			count++
		}
		if count != n.Count {
			w.Errorf("note %+v covers %d slots", n, count)
		}
		noted += int(count)
	}
	for _, s := range e.behind {
		for slot := range e.grid.Between(s.From, s.To) {
			mark(slot.UnixMilli(), "behind")
		}
	}
	want := 0
	for slot := range e.grid.Between(e.last.Anchor.Add(-time.Nanosecond), e.last.Slot) {
		want++
		if seen[slot.UnixMilli()] == "" {
			w.Errorf("%s@%d is lost", name, slot.UnixMilli())
		}
	}
	if want != len(seen) {
		w.Errorf("%s: %d slots up to the last run, %d pushed or noted", name, want, len(seen))
	}
	return pushed, noted
}

// node is an instance that schedules.
type node struct {
	stop      func()
	redeclare func()
	id        string
}

func (w *world) start(release string, declared func() []Schedule) *node {
	w.Helper()
	return w.startOver(w.rdb, release, declared)
}

// startOver starts an instance with a client of its own.
func (w *world) startOver(rdb redis.UniversalClient, release string, declared func() []Schedule) *node {
	w.Helper()
	part := queue.Partition{Namespace: w.ns}
	q, err := queue.New(rdb, part, queue.Caps{})
	must(w, err)
	m, err := instance.New(q.Client(), part.Namespace, instance.Config{Release: release, Lease: time.Second})
	must(w, err)
	s, err := NewScheduler(q.Client(), w.ns, SchedulerConfig{Horizon: 2 * time.Second, Declared: declared})
	must(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx, s.Run) }()
	stopped := false
	n := &node{id: m.ID(), redeclare: s.Redeclare}
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-over; err != nil {
			w.Errorf("instance: %v", err)
		}
	}
	w.Cleanup(n.stop)
	return n
}

func (w *world) leads(n *node) {
	w.Helper()
	testredis.Eventually(w, patience, func() bool {
		h := w.rdb.HMGet(context.Background(), w.q.Keys().Leader, "id", "open").Val()
		return len(h) == 2 && h[0] == n.id && h[1] == "1"
	}, "%s leads", n.id)
}

func names(list []Status) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s ", s.Schedule.Name)
	}
	return strings.TrimSpace(b.String())
}

// backfill is Backfill, and how many it added.
func (w *world) backfill(ctx context.Context, name string, from, to time.Time, progress func(done, of int)) (int, error) {
	got, err := w.Backfill(ctx, name, Backfilling{From: from, To: to, Progress: progress})
	return got.Added, err
}
