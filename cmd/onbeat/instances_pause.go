package main

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/instance"
)

type instancesPauseCmd struct {
	For time.Duration `required:"" help:"For how long at most, up to 10m."`
}

// paused is until when no instance begins a task.
type paused struct {
	Until time.Time `json:"until,omitzero"`
}

// Help says when.
func (*instancesPauseCmd) Help() string {
	return "For a planned failover of Redis: what is not begun cannot be begun twice. What runs goes on, and what falls due waits, " +
		"and is late, or skipped where the schedule says that runs may not overlap. It ends with onbeat instances resume, or by itself, which instances notice with their next heartbeat."
}

// Run lets nobody begin a task for a time.
func (c *instancesPauseCmd) Run(ctx context.Context, a *app) error {
	if c.For <= 0 || c.For > instance.LongestPause {
		return refuse("for", c.For.String(), "out of range", "1ms to "+instance.LongestPause.String())
	}
	v, err := a.pause(ctx, c.For)
	if err != nil {
		return err
	}
	until := v.Now.Add(c.For)
	if a.JSON {
		return a.printJSON(paused{until})
	}
	a.printf("%s until %s: no instance begins a task, and what runs goes on; onbeat instances resume ends it", a.style.yellow("paused"),
		until.Format(time.RFC3339))
	return nil
}

type instancesResumeCmd struct{}

// Run ends a pause before its time.
func (*instancesResumeCmd) Run(ctx context.Context, a *app) error {
	if _, err := a.pause(ctx, 0); err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(paused{})
	}
	a.printf("%s: what fell due begins now", a.style.green("resumed"))
	return nil
}

func (a *app) pause(ctx context.Context, d time.Duration) (instance.View, error) {
	cl, err := a.connect(ctx)
	if err != nil {
		return instance.View{}, err
	}
	defer cl.Close()
	return cl.Instances().Pause(ctx, d)
}
