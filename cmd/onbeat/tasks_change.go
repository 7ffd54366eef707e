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
	IDs []string `arg:"" name:"id" help:"Tasks."`
}

// Run cancels tasks.
func (c *tasksCancelCmd) Run(ctx context.Context, a *app) error {
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
	IDs []string `arg:"" name:"id" help:"Tasks."`
}

// Run forgets tasks.
func (c *tasksDeleteCmd) Run(ctx context.Context, a *app) error {
	return a.eachTask(ctx, c.IDs, func(cl *client, id string) (string, error) {
		was, err := cl.Queue().Cancel(ctx, id, byHand, true)
		if was == task.Running {
			return "asked to stop", err
		}
		return "deleted", err
	})
}

type tasksRetryCmd struct {
	IDs  []string `arg:"" optional:"" name:"id" help:"Dead tasks."`
	All  bool     `help:"Every dead task."`
	Type string   `placeholder:"T" help:"With --all: only of this type."`
}

// Run makes dead tasks due again.
func (c *tasksRetryCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.All == (len(c.IDs) > 0):
		return &usageError{"which tasks?", "name some, or --all for every dead one"}
	case c.All:
		return c.all(ctx, a)
	case c.Type != "":
		return refuse("type", c.Type, "without --all", "")
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

func (c *tasksRetryCmd) all(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p := a.progress()
	retried, unread, after := 0, 0, ""
	for {
		page, err := cl.Queue().List(ctx, task.Dead, queue.ListOptions{Type: c.Type, Limit: 1000, After: after})
		if err != nil {
			return err
		}
		var batch []*task.Task
		for _, f := range page.Tasks {
			if f.Task.Type == "" {
				unread++ // its record is of a newer release, or damaged
				continue
			}
			batch = append(batch, f.Task)
		}
		n, err := cl.Queue().Revive(ctx, batch)
		retried += n
		if err != nil {
			return err
		}
		p.say("%d due again", retried)
		if after = page.Next; after == "" {
			break
		}
	}
	p.clear()
	if a.JSON {
		return a.printJSON(struct {
			Retried    int `json:"retried"`
			Unreadable int `json:"unreadable"`
		}{retried, unread})
	}
	a.printf("%d due again, %d cannot be read", retried, unread)
	return nil
}
