package testredis

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/onbeat/onbeat/internal/embedded"
)

// A Backend is a way to run a real Redis.
type Backend interface {
	// Where completes "redis-server 7.0.15 …".
	Where() string

	// Start starts a server and waits until it answers. Its error wraps ErrPortTaken if another process took the port.
	Start(ctx context.Context, port int, args []string) (Process, error)
}

// A Process is a real Redis that was started. Its port stays the same over Stop, Kill and Restart, and so does its data if
// it writes a file.
type Process interface {
	Addr() string
	Stop(ctx context.Context) error // waits until it is gone
	Kill(ctx context.Context) error // waits until it is gone
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Restart(ctx context.Context) error // starts it after it is gone; waits until it answers
	Remove(ctx context.Context) error  // together with its data, in any state
}

// ErrPortTaken reports that another process listens on the port of a server that was to start.
var ErrPortTaken = errors.New("the port is taken")

// Containers returns a backend that runs servers as containers, or nil if there is no engine for it. The packages that run
// their tests in containers set it before they call Main. It is a variable so that only their module needs a client of
// Docker.
var Containers func() Backend

// backends returns the backends that this machine has, the best first.
func backends() []Backend {
	var all []Backend
	if Containers != nil && allowed(OnContainer) {
		if engine := Containers(); engine != nil {
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
func startOn(ctx context.Context, b Backend, args []string) (Process, error) {
	var err error
	for range 5 {
		var port int
		if port, err = embedded.FreePort(); err != nil {
			return nil, err
		}
		var p Process
		p, err = b.Start(ctx, port, args)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("no Redis %s: %w", b.Where(), err)
}

// children runs servers as child processes.
type children struct{}

func (children) Where() string { return "as a child process" }

func (children) Start(ctx context.Context, port int, args []string) (Process, error) {
	c := &child{opts: embedded.Options{Port: port, Args: args, NoPassword: true}} // so that groups find each other by address
	if err := c.Restart(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

type child struct {
	opts embedded.Options
	srv  *embedded.Server
}

func (c *child) Addr() string { return c.srv.Addr() }

func (c *child) Restart(ctx context.Context) error {
	srv, err := embedded.Start(ctx, c.opts)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	if err != nil {
		return err
	}
	c.srv = srv
	return nil
}

func (c *child) Stop(context.Context) error { return c.srv.Close() }

func (c *child) Kill(ctx context.Context) error {
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

func (c *child) Pause(context.Context) error  { return pause(c.srv.PID()) }
func (c *child) Resume(context.Context) error { return resume(c.srv.PID()) }

func (c *child) Remove(ctx context.Context) error {
	select {
	case <-c.srv.Done():
		return nil
	default:
	}
	return errors.Join(c.Kill(ctx), c.srv.Close())
}
