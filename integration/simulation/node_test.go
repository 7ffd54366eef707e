package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// node is a process while it lives, and what the simulation knows of it. Its fields are guarded by the world's mu.
type node struct {
	world *world
	plan  *process
	link  *link
	rdb   *redis.Client
	d     *onbeat.Dispatcher
	stop  context.CancelFunc
	done  chan struct{} // closed when Run has returned

	started    time.Time
	id         string    // by its log
	registered time.Time // by its log, when it last registered
	ready      time.Time // by its log; zero while it is not
	stopping   time.Time // when it was told to stop
	crashed    time.Time
	ended      time.Time // when Run returned
	err        error
	died       chan struct{} // closed when it crashes
	thaw       chan struct{} // not nil while it is frozen
	ill        time.Time     // until when a fault of its own may hold it up
	woes       []gap         // the times in which others may take it for dead

	running   map[*run]struct{}
	freeSince time.Time // since when it has a free worker; zero: it has none
	backlog   time.Time // when it last began a task that had waited: it is still working through the due tasks
	permitted time.Time // since when the leader's rule lets it claim
	led       gap       // the first and the last moment at which it was seen to lead, with the gate open
	late      bool      // it was blamed for not being ready
	cut       bool      // no data passes to Redis or back
}

// start starts a process.
func (w *world) start(p *process) *node {
	n := &node{
		world: w, plan: p, link: newLink(w.redis, w.plan.Seed+hashOf(p.Name), w.plan.Latency.d()), done: make(chan struct{}),
		started: time.Now(), died: make(chan struct{}), running: map[*run]struct{}{}, freeSince: time.Now(),
	}
	n.rdb = w.dial(n.link)
	// A client that subscribes sends its greeting again after a while, and holds a mutex meanwhile: see link.DialHook.
	n.rdb.Options().MaxRetries = 0
	log := zerolog.New(&hearing{n: n})
	d, err := onbeat.New(n.rdb, onbeat.Config{
		Namespace: namespace, Release: p.Release, Lead: p.Lead, Consume: p.Consume, Standby: p.Standby, Lease: p.Lease.d(),
		MinReady: p.MinReady.d(), ReadyCheck: n.check, Concurrency: p.Concurrency, Queues: p.Queues, Strict: p.Strict,
		Limits: limitsOf(w.plan, p), Drain: p.Drain.d(), Encryption: w.plan.encryption(), Log: log,
	})
	if err != nil {
		w.t.Fatalf("plan %d: process %s: %v", w.plan.Seed, p.Name, err)
	}
	for _, typ := range p.Types {
		if err := d.Handle(typ, handlers.Func(n.handle)); err != nil {
			w.t.Fatalf("plan %d: process %s: %v", w.plan.Seed, p.Name, err)
		}
	}
	var list []producer.Schedule
	for _, name := range p.Declares {
		s := w.plan.timetable(name).schedule(p.Release, w.began)
		s.Elsewhere = true // another process has the types that this one lacks
		list = append(list, s)
	}
	if err := d.Declare(list); err != nil {
		w.t.Fatalf("plan %d: process %s: %v", w.plan.Seed, p.Name, err)
	}
	n.d = d
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	w.with(func() { w.nodes[p.Name] = n })
	go func() {
		err := d.Run(ctx)
		w.with(func() { n.ended, n.err = time.Now(), err })
		_ = n.rdb.Close()
		close(n.done)
	}()
	return n
}

// dial returns a client as a program has it, with a link in place of the network.
func (w *world) dial(l *link) *redis.Client {
	rdb, err := onbeat.Dial("redis://simulated:6379/0")
	if err != nil {
		w.t.Fatal(err)
	}
	c, ok := rdb.(*redis.Client)
	if !ok {
		w.t.Fatalf("a client of type %T", rdb)
	}
	c.AddHook(l)
	return c
}

// limitsOf returns the plan's limits for the types that a process handles.
func limitsOf(p *plan, of *process) map[string]int {
	limits := map[string]int{}
	for typ, n := range p.Limits {
		if slices.Contains(of.Types, typ) {
			limits[typ] = n
		}
	}
	return limits
}

func (n *node) check(ctx context.Context) error {
	if d := n.plan.CheckTakes.d(); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if time.Since(n.started) < n.plan.CheckFails.d() {
		return errors.New("not ready")
	}
	return nil
}

// alive reports whether the process is there and was not told to stop. The caller holds the world's mu.
func (n *node) alive() bool {
	return n.crashed.IsZero() && n.ended.IsZero() && n.stopping.IsZero()
}

// fit returns since when nothing keeps the node from working, or false if something does. The caller holds the world's mu.
func (n *node) fit() (time.Time, bool) {
	if !n.alive() || n.thaw != nil || n.ready.IsZero() || time.Now().Before(n.ill) {
		return time.Time{}, false
	}
	return later2(n.ready, n.ill), true
}

// canLead reports whether the node can lead now. The caller holds the world's mu.
func (n *node) canLead() bool {
	return n.alive() && n.thaw == nil && !n.cut && !n.ready.IsZero() && !n.plan.Standby
}

// dueReady returns by when the node must be ready if nothing holds it up.
func (n *node) dueReady() time.Time {
	p := n.plan
	d := p.CheckFails.d() + 2*p.CheckTakes.d() + p.MinReady.d() + p.Lease.d()/5
	return later2(n.started, n.world.back).Add(d + 250*time.Millisecond)
}

// crash ends the process at this moment. Its goroutines go on for a while, but are cut off from Redis.
func (n *node) crash() {
	n.link.kill()
	n.world.with(func() {
		n.crashed = time.Now()
		for r := range n.running {
			n.world.over(r, endCrashed, nil)
		}
		close(n.died)
	})
	n.stop()
}

// freeze stops the process for a while, as SIGSTOP does. It does not stop a process that is frozen already, because parts of
// the process would go on at the end of the shorter time.
func (n *node) freeze(d time.Duration) {
	thaw, stopped := make(chan struct{}), false
	n.world.with(func() {
		if stopped = n.thaw != nil; !stopped {
			n.thaw = thaw
		}
	})
	if stopped {
		return
	}
	n.link.set(func(l *link) { l.frozen = thaw })
	time.AfterFunc(d, func() {
		n.link.set(func(l *link) { l.frozen = nil })
		n.world.with(func() { n.thaw = nil })
		close(thaw)
	})
}

// gate waits while the process is frozen. It returns false if it is dead.
func (n *node) gate() bool {
	var thaw chan struct{}
	n.world.with(func() { thaw = n.thaw })
	if thaw != nil {
		select {
		case <-thaw:
		case <-n.died:
		}
	}
	select {
	case <-n.died:
		return false
	default:
		return true
	}
}

var errPlanned = errors.New("it was to fail")

// handle is the handler of all types: it does what the payload says, and records the run.
func (n *node) handle(ctx context.Context, t *task.Task) error {
	if !n.gate() {
		return errPlanned
	}
	if ctx.Err() != nil { // the process was frozen before the run could begin
		return ctx.Err()
	}
	var does behaviour
	if err := json.Unmarshal(t.Payload, &does); err != nil {
		return handlers.Dead(err)
	}
	r := n.world.begin(n, t, does)
	err := n.work(ctx, r)
	if err == nil && does.Effect {
		err = n.world.effects.once.Handle(ctx, t)
	}
	if !n.gate() {
		return errPlanned
	}
	n.world.finish(r, ctx, err)
	if errors.Is(err, errPanic) {
		panic("it was to panic")
	}
	return err
}

var errPanic = errors.New("it was to panic")

func (n *node) work(ctx context.Context, r *run) error {
	heard := ctx.Done()
	timer := time.NewTimer(r.does.Takes.d())
	defer timer.Stop()
	for ended := false; !ended; {
		select {
		case <-timer.C:
			ended = true
		case <-n.died:
			return errPlanned
		case <-heard:
			n.world.heard(r, context.Cause(ctx))
			if !r.does.Ignores {
				return ctx.Err()
			}
			heard = nil
		}
	}
	if !r.fails() {
		return nil
	}
	if r.does.Panics {
		return errPanic
	}
	if d := r.does.Retry.d(); d > 0 {
		return handlers.RetryAfter(errPlanned, d)
	}
	return errPlanned
}

// fails reports whether the run should fail.
func (r *run) fails() bool {
	if r.does.Nth > 0 && !r.slot.IsZero() && r.slot.Unix()%r.does.Nth != 0 {
		return false
	}
	return r.attempt <= r.does.Fails
}

// hearing reads a process's log: the ID of the instance, when it was ready, and all lines for people.
type hearing struct {
	n *node
}

func (h *hearing) Write(p []byte) (int, error) {
	var line struct {
		Message  string `json:"message"`
		Instance string `json:"instance"`
		Level    string `json:"level"`
		Leader   string `json:"leader"`
		Error    string `json:"error"`
		Cause    string `json:"cause"`
		Task     string `json:"task"`
	}
	if err := json.Unmarshal(p, &line); err != nil {
		return len(p), nil
	}
	n := h.n
	n.world.with(func() {
		if !n.crashed.IsZero() {
			return
		}
		switch line.Message {
		case "registered":
			n.id, n.ready, n.registered = line.Instance, time.Time{}, time.Now()
			n.world.ids[line.Instance] = n
		case "ready":
			n.ready = time.Now()
		case "lease lost: this instance's claims are void":
			n.ready = time.Time{}
			n.world.book.risk(n, time.Now().Add(n.world.plan.longestLease())) // its last call may still be on its way
		case "resigned":
			n.ready = time.Time{}
		}
		n.world.trace("%s: %s %s %s%s%s", n.plan.Name, line.Level, line.Message, line.Error, line.Cause, line.Task)
	})
	return len(p), nil
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

func later2(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
