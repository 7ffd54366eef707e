package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynqPeer is github.com/hibiken/asynq.
type asynqPeer struct {
	addr   string
	client *asynq.Client
	look   *asynq.Inspector
	calls  counter
}

func newAsynq(addr string) *asynqPeer {
	a := &asynqPeer{addr: addr}
	a.client, a.look = asynq.NewClient(a), asynq.NewInspector(a)
	return a
}

// MakeRedisClient makes it an asynq.RedisConnOpt whose calls are counted. The pool is that of asynq's own.
func (a *asynqPeer) MakeRedisClient() any {
	rdb := redis.NewClient(&redis.Options{Addr: a.addr})
	rdb.AddHook(&a.calls)
	return rdb
}

// Bulk enqueues one by one: asynq has no call for many. Use more callers.
func (a *asynqPeer) Bulk(ctx context.Context, tasks []Task) error {
	for _, t := range tasks {
		if err := a.One(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (a *asynqPeer) One(ctx context.Context, t Task) error {
	x := asynq.NewTask("bench", payload(t))
	var err error
	if t.Due.IsZero() {
		_, err = a.client.EnqueueContext(ctx, x)
	} else {
		_, err = a.client.EnqueueContext(ctx, x, asynq.ProcessAt(t.Due))
	}
	return err
}

func (a *asynqPeer) Dispatch(_ context.Context, o Options, handle Handler) (func() error, error) {
	cfg := asynq.Config{Concurrency: o.Concurrency, LogLevel: asynq.FatalLevel}
	if o.Tuned {
		cfg.DelayedTaskCheckInterval, cfg.TaskCheckInterval = 10*time.Millisecond, 10*time.Millisecond
	}
	mux := asynq.NewServeMux()
	mux.HandleFunc("bench", asynqHandler(o, handle))
	return a.serve(cfg, max(o.Servers, 1), mux)
}

// asynqHandler decodes a typed payload as asynq's documentation does.
func asynqHandler(o Options, handle Handler) asynq.HandlerFunc {
	if !o.Typed {
		return func(_ context.Context, t *asynq.Task) error {
			handle(number(t.Payload()))
			return nil
		}
	}
	return func(_ context.Context, t *asynq.Task) error {
		var args benchArgs
		if err := json.Unmarshal(t.Payload(), &args); err != nil {
			return fmt.Errorf("json.Unmarshal failed: %v: %w", err, asynq.SkipRetry)
		}
		handle(args.number())
		return nil
	}
}

func (a *asynqPeer) serve(cfg asynq.Config, servers int, mux *asynq.ServeMux) (func() error, error) {
	var stops []func() error
	for range servers {
		s := asynq.NewServer(a, cfg)
		if err := s.Start(mux); err != nil {
			return nil, err
		}
		stops = append(stops, func() error { s.Shutdown(); return nil })
	}
	return joinStops(stops), nil
}

// Cadence registers @every, whose grid is whole seconds: that is the slot, as a task does not know its own.
func (a *asynqPeer) Cadence(_ context.Context, jobs int, every time.Duration, beat func(Beat)) (func() error, error) {
	mux := asynq.NewServeMux()
	mux.HandleFunc("beat", func(_ context.Context, t *asynq.Task) error {
		start := time.Now()
		job, err := strconv.Atoi(string(t.Payload()))
		beat(Beat{Job: job, Slot: start.Truncate(every), Start: start})
		return err
	})
	stop, err := a.serve(asynq.Config{Concurrency: max(100, jobs), LogLevel: asynq.FatalLevel}, 1, mux)
	if err != nil {
		return nil, err
	}
	s := asynq.NewScheduler(a, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	for i := range jobs {
		if _, err := s.Register("@every "+every.String(), asynq.NewTask("beat", []byte(strconv.Itoa(i)))); err != nil {
			return nil, err
		}
	}
	if err := s.Start(); err != nil {
		return nil, err
	}
	return func() error { s.Shutdown(); return stop() }, nil
}

func (a *asynqPeer) List(context.Context) error {
	list, err := a.look.ListScheduledTasks("default", asynq.PageSize(100))
	if err == nil && len(list) != 100 {
		err = fmt.Errorf("listed %d tasks, not 100", len(list))
	}
	return err
}

func (a *asynqPeer) Scrape(context.Context) error {
	_, err := a.look.GetQueueInfo("default")
	return err
}

func (a *asynqPeer) Left(context.Context) (int64, error) {
	info, err := a.look.GetQueueInfo("default")
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int64(info.Size), nil
}

func (a *asynqPeer) Calls() int64 { return a.calls.n.Load() }

func (a *asynqPeer) Close() error { return errors.Join(a.client.Close(), a.look.Close()) }
