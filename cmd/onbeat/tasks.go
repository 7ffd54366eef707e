package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type tasksCmd struct {
	List   tasksListCmd   `cmd:"" help:"List tasks."`
	Show   tasksShowCmd   `cmd:"" help:"Show a task: its payload, attempts and errors."`
	Cancel tasksCancelCmd `cmd:"" help:"Take due tasks out; ask running ones to stop."`
	Retry  tasksRetryCmd  `cmd:"" help:"Make dead tasks due again."`
	Delete tasksDeleteCmd `cmd:"" help:"Cancel tasks, and forget those that have ended."`
}

// taskLine is a task as people see it.
type taskLine struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	State       task.State      `json:"state"`
	Held        bool            `json:"held,omitempty"` // waits for its key
	Queue       string          `json:"queue"`
	Priority    string          `json:"priority"`
	Due         time.Time       `json:"due,omitzero"`
	At          time.Time       `json:"at,omitzero"` // due, claimed, died or kept until, by state
	Schedule    string          `json:"schedule,omitempty"`
	Slot        time.Time       `json:"slot,omitzero"`
	Attempts    int             `json:"attempts"` // that have ended
	Attempt     int             `json:"attempt,omitempty"`
	MaxAttempts int             `json:"max_attempts"`
	Instance    string          `json:"instance,omitempty"`
	Fence       int64           `json:"fence,omitempty"`
	Key         string          `json:"key,omitempty"`
	Created     time.Time       `json:"created,omitzero"`
	Timeout     string          `json:"timeout"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	PayloadText string          `json:"payload_text,omitempty"` // of one that is not JSON
	Failures    []task.Failure  `json:"failures,omitempty"`
	Unreadable  string          `json:"unreadable,omitempty"` // why its record cannot be read: only id, state and at are known
}

func lineOfTask(f *queue.Found) taskLine {
	t := f.Task
	l := taskLine{
		ID: t.ID, Type: t.Type, State: f.State, Held: f.Held, Queue: t.QueueName(), Priority: t.Priority.String(),
		Due: t.Due, At: f.At, Schedule: t.Schedule, Slot: t.Slot, Attempts: t.Attempts, Attempt: t.Attempt,
		MaxAttempts: t.AttemptsAllowed(), Instance: t.Instance, Fence: t.Fence, Key: t.Key, Created: t.Created,
		Timeout: schedule.FormatDuration(t.RunTimeout()), Failures: t.Failures,
	}
	if f.Unreadable != nil {
		return taskLine{ID: t.ID, State: f.State, At: f.At, Unreadable: f.Unreadable.Error()}
	}
	if json.Valid(t.Payload) {
		l.Payload = t.Payload
	} else {
		l.PayloadText = string(t.Payload)
	}
	return l
}

// when says what At means.
func (l *taskLine) when(now time.Time) string {
	switch {
	case l.Held:
		return "waits for its key"
	case l.State == task.Due && !l.At.After(now):
		return "due " + ago(l.At, now)
	case l.State == task.Due:
		return "due " + both(l.At, now)
	case l.State == task.Running:
		return "for " + span(now.Sub(l.At))
	case l.State == task.Dead:
		return "died " + ago(l.At, now)
	}
	return "kept for " + span(l.At.Sub(now))
}

func (l *taskLine) attempts() string {
	if l.Unreadable != "" {
		return ""
	}
	return fmt.Sprintf("%d/%d", max(l.Attempts, l.Attempt), l.MaxAttempts)
}

// stateStyle colours a state.
func (a *app) stateStyle(s task.State) func(string) string {
	switch s {
	case task.Running:
		return a.style.cyan
	case task.Dead:
		return a.style.red
	case task.Done:
		return a.style.green
	}
	return nil
}

func noTask(id string, err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return &failure{fmt.Errorf("task %q: not found", id), "finished tasks are forgotten, unless they have an ID of their own or --keep"}
	}
	return err
}

// eachTask does something to tasks, one after the other, and says what.
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
