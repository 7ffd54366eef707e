package main

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
)

type instancesPauseCmd struct {
	For    time.Duration `required:"" help:"Length of the pause, up to 10m."`
	Reason string        `placeholder:"TEXT" help:"Why, in up to 200 characters: status and instances say it."`
}

// Help says when to use the command.
func (*instancesPauseCmd) Help() string {
	return "A failover can make a task begin twice only if the task has begun before it. During the pause, running tasks go on. Tasks " +
		"that fall due wait and are late, or are skipped if their schedule forbids overlapping runs. The pause ends with onbeat " +
		"instances resume, or by itself when the time is over; instances notice the end with their next heartbeat."
}

// Run pauses all instances: none begins a task for a time.
func (c *instancesPauseCmd) Run(ctx context.Context, a *app) error {
	if c.For <= 0 || c.For > instance.LongestPause {
		return refuse("for", c.For.String(), "out of range", "1ms to "+instance.LongestPause.String())
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p, err := cl.Instances.Pause(ctx, c.For, c.Reason)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(p)
	}
	a.printf("%s until %s: no instance begins a task, and running tasks go on; onbeat instances resume ends the pause", a.style.yellow("paused"),
		p.Until.Format(time.RFC3339))
	return nil
}

type instancesResumeCmd struct{}

// Run ends a pause before its time.
func (*instancesResumeCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	if err := cl.Instances.Resume(ctx); err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(admin.Pause{})
	}
	if list.PausedUntil.IsZero() {
		a.printf("the instances of %s were not paused", cl.namespace)
		return nil
	}
	a.printf("%s: the tasks that fell due begin now", a.style.green("resumed"))
	return nil
}
