package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// startOnbeat sets onbeat up as docs/deploy.md does for several replicas: lead: sticky, consume: release. All else is the default.
func startOnbeat(ctx context.Context, r *replica, run runner) (func() error, error) {
	rdb, err := onbeat.Dial("redis://" + r.Store)
	if err != nil {
		return nil, err
	}
	d, err := onbeat.New(rdb, onbeat.Config{
		Namespace: "beat", Release: "r" + strconv.Itoa(r.Release), Lead: instance.LeadSticky, Consume: instance.ConsumeRelease,
	})
	if err != nil {
		return nil, err
	}
	for _, j := range r.Jobs {
		rule := schedule.Every(j.Every)
		if j.Wall {
			rule.Start = schedule.StartAligned
		}
		handler := handlers.Func(func(ctx context.Context, t *task.Task) error { return run(ctx, j, t.ID) })
		if err := errors.Join(d.Handle(j.Name, handler), d.Schedule(j.Name, rule, j.Name, nil)); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for d.Unready() != nil { // as a readiness probe asks
		select {
		case err := <-ended:
			stop()
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() error {
		stop()
		return errors.Join(<-ended, rdb.Close())
	}, nil
}
