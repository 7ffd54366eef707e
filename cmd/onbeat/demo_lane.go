package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/instance"
)

// demoLane is one release and the process that runs it.
type demoLane struct {
	release string

	mu      sync.Mutex
	proc    *os.Process
	exited  chan struct{} // closed when proc has been waited for
	frozen  bool
	leaving bool   // it was told to end
	state   string // for people
}

// start starts a process of the lane's release.
func (d *demo) start(l *demoLane) error {
	log, err := os.OpenFile(d.logOf(l), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(d.exe, "serve", "--config", d.config(), "--release", l.release)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = d.dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ONBEAT_") })
	cmd.SysProcAttr = childOfOurs()
	exited := make(chan struct{})
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it: hold on to that for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", l.release, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proc, l.exited, l.state = cmd.Process, exited, "starting"
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
	l.frozen, l.leaving = s == sigStop, s == sigTerm || s == sigKill
	if err := l.proc.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", l.release, err)
	}
	return nil
}

// gone waits until the process has ended.
func (l *demoLane) gone(ctx context.Context, state string) error {
	l.mu.Lock()
	exited := l.exited
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
		_ = l.proc.Kill()
		<-l.exited
		l.proc = nil
	}
}

// see takes in what the registry says of the lane's process.
func (l *demoLane) see(list []instance.Info) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc == nil || l.frozen || l.leaving {
		return
	}
	select {
	case <-l.exited:
		return
	default:
	}
	for _, i := range list {
		if i.PID != l.proc.Pid {
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
	if l.proc == nil || l.leaving {
		return nil
	}
	select {
	case <-l.exited:
		return fmt.Errorf("%s ended by itself", l.release)
	default:
		return nil
	}
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
			return i.Leader && l.proc != nil && i.PID == l.proc.Pid
		}), err
	})
}
