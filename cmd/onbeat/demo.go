package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/trial"
)

type demoCmd struct {
	InProcess bool `name:"in-process" help:"Use the Redis inside this process even if a redis-server is on PATH."`
}

// Help is shown by onbeat demo --help.
func (c *demoCmd) Help() string {
	return "Starts a Redis, an HTTP recorder on 127.0.0.1 and three releases of itself, rolls them over a job that is due " +
		"each second, and stops, kills and freezes a leader on the way. Ends with a verdict, and exits with 1 if a beat was " +
		"missed or ran twice. It leaves nothing behind."
}

// demoLimit ends a demo that hangs.
const demoLimit = 100 * time.Second

// demoLoad is the demo's one job. The lease is short, so that a frozen leader loses it within few beats. It is long enough
// that an instance on a busy machine does not count as dead.
var demoLoad = conformance.Load{Schedules: 1, Every: demoEvery, Lease: 2500 * time.Millisecond}

const demoEvery = time.Second

// Run is called when the command is given.
func (c *demoCmd) Run(ctx context.Context, a *app) error {
	if !trial.CanSignal {
		return &failure{errors.New("the demo stops, kills and freezes processes with signals, which this system lacks"), "run it on Linux or macOS"}
	}
	ctx, done := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the demo took longer than %s", demoLimit))
	defer done()
	redis, err := embedded.Start(ctx, embedded.Options{InProcess: c.InProcess})
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	ctx, stop := whileRedis(ctx, redis)
	defer stop()
	ctx, unread := a.whileRead(ctx)
	defer unread()
	d := newDemo(a)
	d.show.printf("Redis: %s", redis)
	r, err := conformance.Play(ctx, conformance.Options{
		URL: redis.URL(), Open: openDemo(redis), Watch: func(conformance.Status) { d.watch(ctx) },
	}, "demo", &conformance.Scenario{Name: "demo", Load: demoLoad, Quiet: true, Play: d.story})
	d.end()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if !errors.Is(err, context.Canceled) {
		for _, line := range r.Logs {
			fmt.Fprintln(a.err, line)
		}
	}
	if err != nil {
		return err
	}
	v := demoVerdictOf(r, redis.Version())
	v.lost(d.lost, d.stage.Arrivals())
	if a.JSON {
		err = a.printJSON(v)
	} else {
		v.print(a)
	}
	if err == nil && !v.OK {
		return errSaid
	}
	return err
}

// whileRedis returns a context that also ends when the Redis ends.
func whileRedis(ctx context.Context, redis *embedded.Server) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-redis.Done():
			cancel(errors.Join(errors.New("the Redis of the demo ended"), redis.Err()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// openDemo opens a namespace that the demo need not remove: its Redis goes away at the end.
func openDemo(redis *embedded.Server) func(string) (*conformance.Scratch, error) {
	return func(namespace string) (*conformance.Scratch, error) {
		s, _, err := openNamespace(redis.URL(), namespace)
		return s, err
	}
}

// demo shows a scenario on conformance's stage.
type demo struct {
	stage *conformance.Stage
	lanes []*demoLane
	lost  []demoLoss
	show  *demoShow
	drawn time.Time
}

func newDemo(a *app) *demo {
	d := &demo{lanes: []*demoLane{{release: "v1"}, {release: "v2"}, {release: "v3"}}}
	d.show = newDemoShow(a, d.lanes)
	return d
}

// redrawEvery is how often the demo redraws the picture.
const redrawEvery = 100 * time.Millisecond

// watch keeps the picture up to date while the stage waits for something.
func (d *demo) watch(ctx context.Context) {
	if time.Since(d.drawn) < redrawEvery {
		return
	}
	ctx, done := context.WithTimeout(ctx, time.Second)
	defer done()
	list, _ := d.stage.Instances.List(ctx) // on an error the picture stays as it is
	for _, l := range d.lanes {
		l.see(list.Items)
	}
	d.show.draw()
	d.drawn = time.Now()
}

// end draws the picture for the last time, after the stage has gone.
func (d *demo) end() {
	if d.stage == nil {
		return // no beat was played
	}
	for _, l := range d.lanes {
		l.see(nil)
	}
	d.show.end()
}
