package main

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// byHand is the reason given for what a person cancels.
const byHand = "cancelled by hand"

type tasksCancelCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Tasks."`
	taskFilter
}

// Run cancels tasks.
func (c *tasksCancelCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(c.IDs); err != nil {
		return err
	}
	if c.All {
		return c.forEach(ctx, a, "cancelled, or asked to stop", []task.State{task.Due, task.Running}, oneByOne(func(cl *client, id string) error {
			_, err := cl.Queue().Cancel(ctx, id, byHand, false)
			return err
		}))
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		was, err := cl.Queue().Cancel(ctx, id, byHand, false)
		switch {
		case err != nil:
			return "", err
		case was == task.Due:
			return "cancelled", nil
		case was == task.Running:
			return "asked to stop", nil
		}
		return "", &failure{fmt.Errorf("task %q: is %s already", id, was), "onbeat tasks delete forgets it"}
	})
}

type tasksDeleteCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Tasks."`
	taskFilter
	State string `enum:"dead,done" default:"dead" placeholder:"STATE" help:"With --all: dead (default) or done."`
}

// Run forgets tasks.
func (c *tasksDeleteCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(c.IDs); err != nil {
		return err
	}
	if c.All {
		return c.forEach(ctx, a, "deleted", []task.State{task.State(c.State)}, oneByOne(func(cl *client, id string) error {
			return cl.Queue().Forget(ctx, id, byHand)
		}))
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		was, err := cl.Queue().Cancel(ctx, id, byHand, true)
		if was == task.Running {
			return "asked to stop", err
		}
		return "deleted", err
	})
}

type tasksRetryCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Dead tasks."`
	taskFilter
}

// Run makes dead tasks due again.
func (c *tasksRetryCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(c.IDs); err != nil {
		return err
	}
	if c.All {
		return c.forEach(ctx, a, "due again", []task.State{task.Dead}, func(cl *client, list []queue.Found) (int, error) {
			batch := make([]*task.Task, len(list))
			for i := range list {
				batch[i] = list[i].Task
			}
			return cl.Queue().Revive(ctx, batch)
		})
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		found, err := cl.Queue().Task(ctx, id)
		if err != nil {
			return "", err
		}
		if found.Unreadable != nil {
			return "", &failure{fmt.Errorf("task %q: %w", id, found.Unreadable), "it is of a newer release, or damaged: nobody here can run it"}
		}
		n := 0
		if found.State == task.Dead {
			n, err = cl.Queue().Revive(ctx, []*task.Task{found.Task})
		}
		if err == nil && n == 0 {
			err = &failure{fmt.Errorf("task %q: is %s, not dead", id, found.State), "only dead tasks are retried by hand"}
		}
		return "due again:", err
	})
}
