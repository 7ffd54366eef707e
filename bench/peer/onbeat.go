package peer

import (
	"context"
	"encoding/json"
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

// Namespace is the namespace of every run: each has a server of its own.
const Namespace = "bench"

// Onbeat is onbeat, through its front door.
type Onbeat struct {
	addr  string
	rdb   redis.UniversalClient
	d     *onbeat.Dispatcher // for enqueueing and looking; it does not run
	calls counter
	// Claims counts the calls that asked for work, and those that got none.
	Claims claims
}

// NewOnbeat returns onbeat on a server.
func NewOnbeat(addr string) (*Onbeat, error) {
	o := &Onbeat{addr: addr}
	rdb, err := o.Dial()
	if err != nil {
		return nil, err
	}
	o.rdb = rdb
	o.d, err = onbeat.New(rdb, onbeat.Config{Namespace: Namespace})
	return o, err
}

// Dial returns a client whose calls are counted.
func (o *Onbeat) Dial() (redis.UniversalClient, error) {
	rdb, err := onbeat.Dial("redis://" + o.addr)
	if err == nil {
		rdb.AddHook(&o.calls)
		rdb.AddHook(&o.Claims)
	}
	return rdb, err
}

// Bulk enqueues by EnqueueAll.
func (o *Onbeat) Bulk(ctx context.Context, tasks []Task) error {
	list := make([]*task.Task, len(tasks))
	for i, t := range tasks {
		list[i] = makeTask(t)
	}
	results, err := o.d.EnqueueAll(ctx, list)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// One enqueues by Enqueue.
func (o *Onbeat) One(ctx context.Context, t Task) error {
	_, err := o.d.Enqueue(ctx, makeTask(t))
	return err
}

func makeTask(t Task) *task.Task {
	x := task.New("bench", payload(t))
	if !t.Due.IsZero() {
		x.Due = t.Due
	}
	return x
}

// Dispatch runs dispatchers.
func (o *Onbeat) Dispatch(ctx context.Context, opts Options, handle Handler) (func() error, error) {
	var stops []func() error
	for range max(opts.Servers, 1) {
		rdb, err := o.Dial()
		if err != nil {
			return nil, err
		}
		cfg := onbeat.Config{Namespace: Namespace, Concurrency: opts.Concurrency, Lease: opts.Lease}
		if opts.Share || opts.Servers > 1 {
			cfg.Lead, cfg.Consume = instance.LeadSticky, instance.ConsumeRelease
		}
		d, err := onbeat.New(rdb, cfg)
		if err != nil {
			return nil, err
		}
		if err := d.Handle("bench", onbeatHandler(opts, handle)); err != nil {
			return nil, err
		}
		stop := Run(ctx, d)
		stops = append(stops, func() error { return errors.Join(stop(), rdb.Close()) })
	}
	return joinStops(stops), nil
}

func onbeatHandler(o Options, handle Handler) handlers.TaskHandler {
	if o.Typed {
		return handlers.Typed(func(_ context.Context, args benchArgs) error {
			handle(args.number())
			return nil
		})
	}
	return handlers.Func(func(_ context.Context, t *task.Task) error {
		handle(number(t.Payload))
		return nil
	})
}

// Run runs a dispatcher until it is stopped.
func Run(ctx context.Context, d *onbeat.Dispatcher) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// joinStops stops all at once.
func joinStops(stops []func() error) func() error {
	return func() error {
		ended := make(chan error, len(stops))
		for _, stop := range stops {
			go func() { ended <- stop() }()
		}
		var all error
		for range stops {
			all = errors.Join(all, <-ended)
		}
		return all
	}
}

// Cadence declares schedules on a grid of whole intervals.
func (o *Onbeat) Cadence(ctx context.Context, jobs int, every time.Duration, beat func(Beat)) (func() error, error) {
	_, stop, err := o.Beat(ctx, jobs, every, beat)
	return stop, err
}

// Beat runs one instance with such schedules. Calls counts the commands that it sent itself.
func (o *Onbeat) Beat(ctx context.Context, jobs int, every time.Duration, beat func(Beat)) (calls func() int64, stop func() error, err error) {
	rdb, err := o.Dial()
	if err != nil {
		return nil, nil, err
	}
	own := &counter{}
	rdb.AddHook(own)
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: Namespace, Concurrency: max(100, jobs)})
	if err != nil {
		return nil, nil, err
	}
	if err := d.Handle("beat", handlers.Func(func(_ context.Context, t *task.Task) error {
		job, err := strconv.Atoi(string(t.Payload))
		beat(Beat{Job: job, Slot: t.Slot, Start: time.Now()})
		return err
	})); err != nil {
		return nil, nil, err
	}
	rule := schedule.Every(every)
	rule.Start = schedule.StartAligned
	for i := range jobs {
		if err := d.Schedule(fmt.Sprintf("job-%06d", i), rule, "beat", json.RawMessage(strconv.Itoa(i))); err != nil {
			return nil, nil, err
		}
	}
	end := Run(ctx, d)
	return own.n.Load, func() error { return errors.Join(end(), rdb.Close()) }, nil
}

// List reads a page as `onbeat tasks list` does.
func (o *Onbeat) List(ctx context.Context) error {
	p, err := o.d.Admin().Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: task.Due}, Limit: 100})
	if err == nil && len(p.Items) != 100 {
		err = fmt.Errorf("listed %d tasks, not 100", len(p.Items))
	}
	return err
}

// Scrape reads what a scrape of the metrics reads.
func (o *Onbeat) Scrape(ctx context.Context) error {
	_, err := o.d.Admin().Activity.Counts(ctx)
	return err
}

// Left counts what is due, held or running.
func (o *Onbeat) Left(ctx context.Context) (int64, error) {
	c, err := o.d.Admin().Activity.Counts(ctx)
	return c.Due + c.Held + c.Running, err
}

// Admin is for looking in.
func (o *Onbeat) Admin() *admin.Admin { return o.d.Admin() }

// Calls counts the commands sent.
func (o *Onbeat) Calls() int64 { return o.calls.n.Load() }

// Close closes the client.
func (o *Onbeat) Close() error { return o.rdb.Close() }
