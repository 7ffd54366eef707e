package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// namespace is the namespace of every run: each run has a server of its own.
const namespace = "bench"

// onbeatPeer is onbeat through its front door.
type onbeatPeer struct {
	addr  string
	parts int // partitions of the namespace
	rdb   redis.UniversalClient
	d     *onbeat.Dispatcher // for enqueueing and looking; it does not run
	calls counter
}

func newOnbeat(addr string, partitions int) (*onbeatPeer, error) {
	o := &onbeatPeer{addr: addr, parts: partitions}
	var err error
	if o.rdb, err = o.dial(); err != nil {
		return nil, err
	}
	o.d, err = onbeat.New(o.rdb, onbeat.Config{Namespace: namespace, Partitions: partitions})
	return o, err
}

// dial returns a client whose calls are counted.
func (o *onbeatPeer) dial() (redis.UniversalClient, error) {
	rdb, err := onbeat.Dial("redis://" + o.addr)
	if err == nil {
		rdb.AddHook(&o.calls)
	}
	return rdb, err
}

func (o *onbeatPeer) Bulk(ctx context.Context, tasks []work) error {
	list := make([]*task.Task, len(tasks))
	for i, w := range tasks {
		list[i] = onbeatTask(w)
	}
	results, err := o.d.EnqueueAll(ctx, list)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

func (o *onbeatPeer) One(ctx context.Context, w work) error {
	_, err := o.d.Enqueue(ctx, onbeatTask(w))
	return err
}

func onbeatTask(w work) *task.Task {
	t := task.New("bench", w.payload())
	if !w.due.IsZero() {
		t.Due = w.due
	}
	return t
}

func (o *onbeatPeer) Dispatch(ctx context.Context, opts options, handle func(n int)) error {
	cfg := onbeat.Config{Namespace: namespace, Partitions: o.parts, Concurrency: opts.concurrency, Lease: opts.lease}
	if opts.share || opts.servers > 1 {
		cfg.Lead, cfg.Consume = instance.LeadSticky, instance.ConsumeRelease
	}
	var handler handlers.TaskHandler = handlers.Func(func(_ context.Context, t *task.Task) error {
		handle(number(t.Payload))
		return nil
	})
	if opts.typed {
		handler = handlers.Typed(func(_ context.Context, p typedPayload) error {
			handle(p.number())
			return nil
		})
	}
	for range max(opts.servers, 1) {
		_, _, err := o.start(ctx, cfg, func(d *onbeat.Dispatcher) error { return d.Handle("bench", handler) })
		if err != nil {
			return err
		}
	}
	return nil
}

// start runs a dispatcher with a client of its own until it is stopped, after prepare gave it its handlers and schedules.
func (o *onbeatPeer) start(ctx context.Context, cfg onbeat.Config, prepare func(*onbeat.Dispatcher) error) (redis.UniversalClient, func() error, error) {
	rdb, err := o.dial()
	if err != nil {
		return nil, nil, err
	}
	d, err := onbeat.New(rdb, cfg)
	if err == nil {
		err = prepare(d)
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return rdb, func() error {
		cancel()
		return errors.Join(<-ended, rdb.Close())
	}, nil
}

// Cadence declares schedules on a grid of whole intervals.
func (o *onbeatPeer) Cadence(ctx context.Context, jobs int, every time.Duration, run func(beat)) error {
	cfg := onbeat.Config{Namespace: namespace, Partitions: o.parts, Concurrency: max(100, jobs)}
	_, _, err := o.start(ctx, cfg, func(d *onbeat.Dispatcher) error {
		return errors.Join(declare(d, jobs, every), d.Handle("beat", handlers.Func(func(_ context.Context, t *task.Task) error {
			job, err := strconv.Atoi(string(t.Payload))
			run(beat{job, t.Slot, time.Now()})
			return err
		})))
	})
	return err
}

// declare declares schedules with the same slots. The payload of each is its number.
func declare(d *onbeat.Dispatcher, n int, every time.Duration) error {
	rule := schedule.Every(every)
	rule.Start = schedule.StartAligned
	list := make([]onbeat.Schedule, n)
	for i := range list {
		list[i] = onbeat.Schedule{Name: fmt.Sprintf("job-%06d", i), Rule: rule, Task: "beat", Payload: []byte(strconv.Itoa(i))}
	}
	return d.Declare(list)
}

// list reads a page as `onbeat tasks list` does.
func (o *onbeatPeer) list(ctx context.Context) error {
	p, err := o.d.Admin().Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskPlanned}, Limit: 100})
	if err == nil && len(p.Items) != 100 {
		err = fmt.Errorf("listed %d tasks, not 100", len(p.Items))
	}
	return err
}

// scrape reads what a metrics endpoint shows.
func (o *onbeatPeer) scrape(ctx context.Context) error {
	_, err := o.d.Admin().Activity.Counts(ctx)
	return err
}

func (o *onbeatPeer) Left(ctx context.Context) (int64, error) {
	c, err := o.d.Admin().Activity.Counts(ctx)
	return c.Waiting + c.Later + c.Running, err
}

func (o *onbeatPeer) Calls() int64 { return o.calls.n.Load() }
