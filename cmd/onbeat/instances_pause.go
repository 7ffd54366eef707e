package main

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/instance"
)

type instancesPauseCmd struct {
	For time.Duration `required:"" help:"For how long, up to 10m."`
}

// pauseEnd is how long an end that Redis does not answer is tried again: the pause ends by itself too.
const pauseEnd = 2 * time.Second

// Help says when.
func (*instancesPauseCmd) Help() string {
	return "For a planned failover of Redis: what is not begun cannot be begun twice. What runs goes on, and what falls due waits, " +
		"and is late. It ends with the time, with an interrupt, or with onbeat instances resume."
}

// Run lets nobody take work for a time.
func (c *instancesPauseCmd) Run(ctx context.Context, a *app) error {
	if c.For <= 0 || c.For > instance.LongestPause {
		return refuse("for", c.For.String(), "out of range", "1ms to "+instance.LongestPause.String())
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := cl.Instances().Pause(ctx, c.For); err != nil {
		return err
	}
	if !a.JSON {
		a.printf("%s for %s: nobody begins a task; what runs goes on", a.style.yellow("paused"), c.For)
	}
	select {
	case <-time.After(c.For):
	case <-ctx.Done():
	}
	return cl.resume(ctx, a)
}

type instancesResumeCmd struct{}

// Run ends a pause before its time.
func (*instancesResumeCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.resume(ctx, a)
}

// resume ends a pause, and wakes those who wait for its end. It tries for a while: a failover may be under way.
func (c *client) resume(ctx context.Context, a *app) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), pauseEnd)
	defer done()
	for {
		_, err := c.Instances().Pause(ctx, 0)
		switch {
		case err == nil && a.JSON:
			return a.printJSON(map[string]bool{"paused": false})
		case err == nil:
			a.printf("%s: what fell due begins now", a.style.green("resumed"))
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the pause ends by itself, and with it each instance's within a heartbeat: %w", err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
