package consumer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/precise"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) {
	precise.Use(time.Sleep) // a system call would hold up tests in virtual time
	testredis.Main(m)
}

// patience is what a slow machine gets.
const patience = 30 * time.Second

// world is one namespace of a Redis.
type world struct {
	*testing.T
	rdb redis.UniversalClient
	ns  string
	q   *queue.Queue
	reg *instance.Registry
}

func newWorld(t *testing.T, rdb redis.UniversalClient, caps ...queue.Caps) *world {
	t.Helper()
	return worldIn(t, rdb, testredis.Namespace(t), caps...)
}

func worldIn(t *testing.T, rdb redis.UniversalClient, ns string, caps ...queue.Caps) *world {
	t.Helper()
	p := queue.Partition{Namespace: ns}
	q, err := queue.New(rdb, p, append(caps, queue.Caps{})[0])
	must(t, err)
	reg, err := instance.NewRegistry(rdb, p.Namespace)
	must(t, err)
	return &world{T: t, rdb: rdb, ns: ns, q: q, reg: reg}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node is an instance that consumes, and opens the gate when it leads.
type node struct {
	*Consumer
	id   string
	stop context.CancelFunc
	over chan struct{}
	err  error
}

type setup struct {
	Config
	instance instance.Config
	rdb      redis.UniversalClient
	caps     queue.Caps
	slept    func(time.Time) time.Duration
}

func concurrency(n int) func(*setup)     { return func(s *setup) { s.Concurrency = n } }
func drain(d time.Duration) func(*setup) { return func(s *setup) { s.Drain = d } }
func lease(d time.Duration) func(*setup) { return func(s *setup) { s.instance.Lease = d } }
func over(rdb redis.UniversalClient) func(*setup) {
	return func(s *setup) { s.rdb = rdb }
}
func consumeBy(c instance.Consume) func(*setup) {
	return func(s *setup) { s.instance.Consume = c }
}
func release(r string) func(*setup) { return func(s *setup) { s.instance.Release = r } }

// start runs an instance until the test ends, or stop.
func (w *world) start(h Handlers, changes ...func(*setup)) *node {
	w.Helper()
	s := setup{rdb: w.rdb}
	for _, f := range changes {
		f(&s)
	}
	p := queue.Partition{Namespace: w.ns}
	q, err := queue.New(s.rdb, p, s.caps)
	must(w, err)
	m, err := instance.New(q.Client(), p.Namespace, s.instance)
	must(w, err)
	reg, err := instance.NewRegistry(s.rdb, p.Namespace)
	must(w, err)
	c, err := New(q.Client(), w.ns, h, s.Config)
	must(w, err)
	if s.slept != nil {
		c.slept = s.slept
	}
	n := &node{Consumer: c, id: m.ID(), over: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(n.over)
		n.err = m.Run(ctx, func(session *instance.Session) error {
			var lead sync.WaitGroup
			lead.Go(func() {
				session.Lead(func(ctx context.Context, t queue.Term) {
					for ctx.Err() == nil {
						if _, err := reg.Open(ctx, t); err == nil {
							<-ctx.Done()
						}
					}
				})
			})
			defer lead.Wait()
			return c.Run(session)
		})
	}()
	n.stop = func() { stop(); <-n.over }
	w.Cleanup(func() {
		n.stop()
		if n.err != nil {
			w.Errorf("instance: %v", n.err)
		}
	})
	return n
}

// leads waits until an instance leads.
func (w *world) leads(n *node) {
	w.Helper()
	testredis.Eventually(w, patience, func() bool {
		h := w.rdb.HMGet(w.Context(), w.q.Keys().Leader, "id", "open").Val()
		return len(h) == 2 && h[0] == n.id && h[1] == "1"
	}, "%s leads", n.id)
}

func (w *world) add(tasks ...*task.Task) {
	w.Helper()
	for _, t := range tasks {
		if t.ID == "" {
			t.ID = task.NewID(time.Now())
		}
	}
	refused, _, err := w.q.Enqueue(w.Context(), tasks, true)
	must(w, err)
	must(w, errors.Join(refused...))
}

// mux makes handlers of functions.
func mux(t testing.TB, fns map[string]handlers.Func) *handlers.Mux {
	t.Helper()
	m := handlers.NewMux()
	for typ, fn := range fns {
		must(t, m.Handle(typ, fn))
	}
	return m
}

func one(t testing.TB, fn handlers.Func) *handlers.Mux {
	t.Helper()
	return mux(t, map[string]handlers.Func{"job": fn})
}

// job is a task of type "job".
func job(id string, opts ...task.Option) *task.Task {
	t := task.New("job", nil, append([]task.Option{task.ID(id)}, opts...)...)
	return t
}

// ledger counts what ran.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int
	list []*task.Task
}

func (l *ledger) note(t *task.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[string]int{}
	}
	l.runs[t.ID]++
	seen := *t
	l.list = append(l.list, &seen)
}

func (l *ledger) count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

func (l *ledger) all() []*task.Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*task.Task{}, l.list...)
}

func (l *ledger) total() int { return len(l.all()) }

// gone waits until nothing is known of a task.
func (w *world) gone(ids ...string) {
	w.Helper()
	for _, id := range ids {
		testredis.Eventually(w, patience, func() bool {
			return !w.rdb.HExists(w.Context(), w.q.Keys().Tasks, id).Val()
		}, "%s leaves", id)
	}
}

// record is a task as it lies in Redis.
func (w *world) record(id string) *task.Task {
	w.Helper()
	rec, err := w.rdb.HGet(w.Context(), w.q.Keys().Tasks, id).Result()
	must(w, err)
	t := &task.Task{ID: id}
	must(w, task.Decode(rec, t))
	return t
}

func (w *world) dead(id string) bool {
	return w.rdb.ZScore(w.Context(), w.q.Keys().Dead, id).Err() == nil
}

// caught is a cause that a handler saw.
type caught struct {
	mu    sync.Mutex
	cause error
}

func (c *caught) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = err
}

func (c *caught) get() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}
