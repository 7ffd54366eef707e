package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/trial"
)

// demoLane is one release and the process that runs it.
type demoLane struct {
	release string

	mu      sync.Mutex
	proc    *trial.Process
	frozen  bool
	leaving bool   // it was told to end
	state   string // for people
}

// start starts a process of the lane's release.
func (d *demo) start(l *demoLane) error {
	p, err := trial.Start(l.release, d.dir, d.logOf(l), nil, "serve", "--config", d.config(), "--release", l.release)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proc, l.state = p, "starting"
	l.frozen, l.leaving = false, false
	return nil
}

// signal sends a signal to the lane's process, by its ID alone.
func (l *demoLane) signal(s syscall.Signal, state string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc == nil {
		return fmt.Errorf("%s does not run", l.release)
	}
	l.state = state
	l.frozen, l.leaving = s == trial.SigStop, s == trial.SigTerm || s == trial.SigKill
	return l.proc.Signal(s)
}

// gone waits until the process has ended.
func (l *demoLane) gone(ctx context.Context, state string) error {
	l.mu.Lock()
	exited := l.proc.Exited()
	l.mu.Unlock()
	ctx, done := context.WithTimeoutCause(ctx, demoPatience, fmt.Errorf("%s does not end", l.release))
	defer done()
	select {
	case <-exited:
		l.mu.Lock()
		l.proc, l.state = nil, state
		l.mu.Unlock()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill ends the process if it is there.
func (l *demoLane) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc != nil {
		l.proc.Kill()
		l.proc = nil
	}
}

// see takes in what the registry says of the lane's process.
func (l *demoLane) see(list []instance.Info) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc == nil || l.frozen || l.leaving || l.proc.HasExited() {
		return
	}
	for _, i := range list {
		if i.PID != l.proc.PID() {
			continue
		}
		switch {
		case i.Leader:
			l.state = "leads"
		case i.State == "ready":
			l.state = "stands by"
		default:
			l.state = i.State
		}
	}
}

func (l *demoLane) is() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// ended returns an error if a process ended that should not have.
func (l *demoLane) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc != nil && !l.leaving && l.proc.HasExited() {
		return fmt.Errorf("%s ended by itself", l.release)
	}
	return nil
}

// watch keeps the picture true until ctx ends.
func (d *demo) watch(ctx context.Context) {
	defer close(d.idle)
	for {
		asleep := time.Now()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		d.stall.Store(max(d.stall.Load(), int64(time.Since(asleep)-100*time.Millisecond)))
		call, done := context.WithTimeout(ctx, time.Second)
		list, err := d.client.Instances().List(call)
		done()
		if err == nil {
			for _, l := range d.lanes {
				l.see(list)
			}
		}
		d.show.draw()
	}
}

// demoPatience is how long any one thing of the demo may take.
const demoPatience = 20 * time.Second

// until waits for something to be true.
func (d *demo) until(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	ctx, done := context.WithTimeoutCause(ctx, demoPatience, fmt.Errorf("waited %s, and %s did not come", demoPatience, what))
	defer done()
	for {
		yes, err := ok(ctx)
		if err == nil && yes {
			return nil
		}
		for _, l := range d.lanes {
			if err := l.ended(); err != nil {
				return err
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-d.redis.Done():
			return errors.Join(errors.New("the Redis of the demo ended"), d.redis.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leads waits until Redis says that a lane's process leads.
func (d *demo) leads(ctx context.Context, l *demoLane) error {
	return d.until(ctx, l.release+" in the lead", func(ctx context.Context) (bool, error) {
		list, err := d.client.Instances().List(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.ContainsFunc(list, func(i instance.Info) bool {
			return i.Leader && l.proc != nil && i.PID == l.proc.PID()
		}), err
	})
}
