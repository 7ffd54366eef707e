package main

import (
	"context"
	"errors"

	"github.com/onbeat/onbeat/admin"
)

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
		return c.bulk(ctx, a, "cancelled, or asked to stop", admin.CancelTasks, "")
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		was, err := cl.Tasks.Cancel(ctx, id)
		switch {
		case errors.As(err, new(*admin.StateError)):
			return "", &failure{err, "onbeat tasks delete forgets it"}
		case err == nil && was == admin.TaskRunning:
			return "asked to stop", nil
		}
		return "cancelled", err
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
		return c.bulk(ctx, a, "deleted", admin.DeleteTasks, admin.TaskState(c.State))
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		was, err := cl.Tasks.Delete(ctx, id)
		if was == admin.TaskRunning {
			return "asked to stop", err
		}
		return "deleted", err
	})
}

type tasksRetryCmd struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Dead tasks."`
	AsItWas bool     `help:"Keep the payload and settings that a task of a slot had, even if its schedule says something else now."`
	taskFilter
}

// Help is shown by onbeat tasks retry --help.
func (c *tasksRetryCmd) Help() string {
	return "A task of a slot gets what its schedule says now: type, payload, queue, priority, timeout, attempts and backoff. It stays as it was " +
		"with --as-it-was, or if the schedule is gone. The answer says which."
}

// Run makes dead tasks due again.
func (c *tasksRetryCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(c.IDs); err != nil {
		return err
	}
	if c.All {
		action := admin.RetryTasks
		if c.AsItWas {
			action = admin.RetryAsWas
		}
		return c.bulk(ctx, a, "due again", action, "")
	}
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		result, err := cl.Tasks.Retry(ctx, id, c.AsItWas)
		if errors.As(err, new(*admin.StateError)) {
			err = &failure{err, "only dead tasks are retried by hand"}
		}
		return result + ":", err
	})
}
