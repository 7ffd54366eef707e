package main

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

// MakeRedisClient makes it an asynq.RedisConnOpt whose calls are counted. The pool is as large as asynq's own.
func (a *asynqPeer) MakeRedisClient() any {
	rdb := redis.NewClient(&redis.Options{Addr: a.addr})
	rdb.AddHook(&a.calls)
	return rdb
}

// Bulk enqueues one by one: asynq has no call for many. Use more callers.
func (a *asynqPeer) Bulk(ctx context.Context, tasks []work) error {
	for _, t := range tasks {
		if err := a.One(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (a *asynqPeer) One(ctx context.Context, w work) error {
	x := asynq.NewTask("bench", w.payload())
	var err error
	if w.due.IsZero() {
		_, err = a.client.EnqueueContext(ctx, x)
	} else {
		_, err = a.client.EnqueueContext(ctx, x, asynq.ProcessAt(w.due))
	}
	return err
}

func (a *asynqPeer) Dispatch(_ context.Context, o options, handle func(n int)) error {
	cfg := asynq.Config{Concurrency: o.concurrency, LogLevel: asynq.FatalLevel}
	if o.tuned {
		cfg.DelayedTaskCheckInterval, cfg.TaskCheckInterval = 10*time.Millisecond, 10*time.Millisecond
	}
	mux := asynq.NewServeMux()
	mux.HandleFunc("bench", asynqHandler(o, handle))
	return a.serve(cfg, max(o.servers, 1), mux)
}

// asynqHandler decodes a typed payload as asynq's documentation does.
func asynqHandler(o options, handle func(n int)) asynq.HandlerFunc {
	if !o.typed {
		return func(_ context.Context, t *asynq.Task) error {
			handle(number(t.Payload()))
			return nil
		}
	}
	return func(_ context.Context, t *asynq.Task) error {
		var args typedPayload
		if err := json.Unmarshal(t.Payload(), &args); err != nil {
			return fmt.Errorf("json.Unmarshal failed: %v: %w", err, asynq.SkipRetry)
		}
		handle(args.number())
		return nil
	}
}

func (a *asynqPeer) serve(cfg asynq.Config, servers int, mux *asynq.ServeMux) error {
	for range servers {
		if err := asynq.NewServer(a, cfg).Start(mux); err != nil {
			return err
		}
	}
	return nil
}

// Cadence registers @every, whose grid is whole seconds: that is the slot, as a task does not know its own.
func (a *asynqPeer) Cadence(_ context.Context, jobs int, every time.Duration, run func(beat)) error {
	mux := asynq.NewServeMux()
	mux.HandleFunc("beat", func(_ context.Context, t *asynq.Task) error {
		start := time.Now()
		job, err := strconv.Atoi(string(t.Payload()))
		run(beat{job, start.Truncate(every), start})
		return err
	})
	if err := a.serve(asynq.Config{Concurrency: max(100, jobs), LogLevel: asynq.FatalLevel}, 1, mux); err != nil {
		return err
	}
	s := asynq.NewScheduler(a, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	for i := range jobs {
		if _, err := s.Register("@every "+every.String(), asynq.NewTask("beat", []byte(strconv.Itoa(i)))); err != nil {
			return err
		}
	}
	return s.Start()
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
