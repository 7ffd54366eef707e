package testredis

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/onbeat/onbeat/internal/embedded"
)

// A backend is a way to run a real Redis.
type backend interface {
	// where completes "redis-server 7.0.15 …".
	where() string

	// start starts a server and waits until it answers. Its error wraps errPortTaken if another process took the port.
	start(ctx context.Context, port int, args []string) (process, error)
}

// A process is a real Redis that was started. Its port stays the same over stop, kill and restart, and so does its data if
// it writes a file.
type process interface {
	addr() string
	stop(ctx context.Context) error // waits until it is gone
	kill(ctx context.Context) error // waits until it is gone
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	restart(ctx context.Context) error // starts it after it is gone; waits until it answers
	remove(ctx context.Context) error  // together with its data, in any state
}

var errPortTaken = errors.New("the port is taken")

// backends returns the backends that this machine has, the best first.
func backends() []backend {
	var all []backend
	if allowed(onContainer) {
		if engine := docker.get(); engine != nil {
			all = append(all, engine)
		}
	}
	if allowed(onChild) {
		if _, err := exec.LookPath("redis-server"); err == nil {
			all = append(all, children{})
		}
	}
	return all
}

// startOn starts a server on a free port. Other test binaries look for a port at the same time, so it tries again if
// another was faster.
func startOn(ctx context.Context, b backend, args []string) (process, error) {
	var err error
	for range 5 {
		var port int
		if port, err = embedded.FreePort(); err != nil {
			return nil, err
		}
		var p process
		p, err = b.start(ctx, port, args)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("no Redis %s: %w", b.where(), err)
}

// children runs servers as child processes.
type children struct{}

func (children) where() string { return "as a child process" }

func (children) start(ctx context.Context, port int, args []string) (process, error) {
	c := &child{opts: embedded.Options{Port: port, Args: args, NoPassword: true}} // so that groups find each other by address
	if err := c.restart(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

type child struct {
	opts embedded.Options
	srv  *embedded.Server
}

func (c *child) addr() string { return c.srv.Addr() }

func (c *child) restart(ctx context.Context) error {
	srv, err := embedded.Start(ctx, c.opts)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	if err != nil {
		return err
	}
	c.srv = srv
	return nil
}

func (c *child) stop(context.Context) error { return c.srv.Close() }

func (c *child) kill(ctx context.Context) error {
	if err := kill(c.srv.PID()); err != nil {
		return err
	}
	select {
	case <-c.srv.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *child) pause(context.Context) error  { return pause(c.srv.PID()) }
func (c *child) resume(context.Context) error { return resume(c.srv.PID()) }

func (c *child) remove(ctx context.Context) error {
	select {
	case <-c.srv.Done():
		return nil
	default:
	}
	return errors.Join(c.kill(ctx), c.srv.Close())
}
