package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

type tasksCmd struct {
	List     tasksListCmd     `cmd:"" help:"List tasks."`
	Show     tasksShowCmd     `cmd:"" help:"Show a task: its payload, attempts and errors."`
	Failures tasksFailuresCmd `cmd:"" help:"Group the dead tasks by type and error."`
	Cancel   tasksCancelCmd   `cmd:"" help:"Remove tasks that wait, retry or are planned, and ask running ones to stop."`
	Retry    tasksRetryCmd    `cmd:"" help:"Make dead tasks due again."`
	Delete   tasksDeleteCmd   `cmd:"" help:"Cancel tasks, and forget those that have ended."`
}

// whenOf describes the task's At, whose meaning depends on the state.
func whenOf(l *admin.Task, now time.Time) string {
	switch {
	case l.Held:
		return "waits for its key"
	case l.State == admin.TaskWaiting:
		return "due " + wording.Ago(l.At, now)
	case l.State == admin.TaskRetrying, l.State == admin.TaskPlanned:
		return "due " + both(l.At, now)
	case l.State == admin.TaskRunning:
		return "for " + wording.Span(now.Sub(l.At))
	case l.State == admin.TaskDead:
		return "died " + wording.Ago(l.At, now)
	case l.State == admin.TaskGone:
		return "known to the archive alone, noted " + wording.Ago(l.At, now)
	}
	return "kept for " + wording.Span(l.At.Sub(now))
}

func attemptsOf(l *admin.Task) string {
	if l.Unreadable != "" {
		return ""
	}
	return fmt.Sprintf("%d/%d", max(l.Attempts, l.Attempt), l.MaxAttempts)
}

// stateStyle colours the state of a task.
func (a *app) stateStyle(l *admin.Task) func(string) string {
	switch {
	case l.State == admin.TaskRunning:
		return a.style.cyan
	case l.State == admin.TaskDead, l.Overdue:
		return a.style.red
	case l.State == admin.TaskDone:
		return a.style.green
	}
	return nil
}

func noTask(id string, err error) error {
	if errors.Is(err, task.ErrNotFound) {
		return &failure{fmt.Errorf("task %q: not found", id), "onbeat forgets a finished task unless it was enqueued with --id or --keep"}
	}
	return err
}

// eachTask calls do for each task, one after the other, and prints the results.
func (a *app) eachTask(ctx context.Context, ids []string, do func(*client, string) (string, error)) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.each(ids, func(id string) (string, error) {
		word, err := do(c, id)
		return word, noTask(id, err)
	})
}
