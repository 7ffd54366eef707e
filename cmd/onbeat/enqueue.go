package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

type enqueueCmd struct {
	Type string `arg:"" optional:"" help:"Type of the task. It selects the handler."`

	File    string `placeholder:"FILE" predict:"file" help:"Add the tasks of a file, one JSON object a line; - is stdin. Fields as the flags: type, payload, in, at, id, queue, priority, timeout, max_attempts, backoff, backoff_cap, unique, unique_for, key, key_limit, keep."`
	Strict  bool   `help:"Refuse a task that no instance handles now. Without it, the task waits until one does, and a note says so."`
	SkipBad bool   `help:"Report a bad line and go on. The exit code is 1 if there was a bad line."`

	Payload     string  `short:"p" placeholder:"JSON" predict:"file" help:"Input of the handler: ${payloadHelp}"`
	In          string  `placeholder:"D" help:"Due after this time from now: 10m, 1.5h, 2d."`
	At          string  `placeholder:"T" help:"Due at a time (RFC 3339), or at midnight of a date here: 2030-01-31."`
	ID          *string `placeholder:"ID" help:"An ID of your own: a second task with the same ID is not added."`
	Unique      *string `placeholder:"KEY" help:"Do not add the task if one with this key was added less than --unique-for ago."`
	UniqueFor   string  `placeholder:"D" help:"Window of --unique. Default 24h."`
	Queue       *string `placeholder:"Q" help:"Queue to wait in. Default: default."`
	Priority    string  `placeholder:"P" values:"low,normal,high" help:"low, normal or high. Default normal."`
	Timeout     string  `placeholder:"D" help:"Longest duration of one run. Default 30m."`
	MaxAttempts *int    `placeholder:"N" help:"Most attempts; 1 means no retry. Default 10."`
	Backoff     string  `placeholder:"D" help:"Longest delay after the first failure; it doubles with each. Default 1s."`
	BackoffCap  string  `placeholder:"D" help:"Upper bound of these delays. Default 1h."`
	Key         *string `placeholder:"KEY" help:"Of the tasks with this key, at most --key-limit run at once."`
	KeyLimit    int     `placeholder:"N" help:"Limit of --key. Default 1."`
	Keep        string  `placeholder:"D" help:"Keep the finished task visible this long. Default 24h with --id, else not at all."`
}

// Run adds one task or the tasks of a file.
func (c *enqueueCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.File != "" && c.Type != "":
		return &usageError{"TYPE and --file exclude each other", "each line of the file names its type"}
	case c.File != "" && c.ofOne() != "":
		return &usageError{c.ofOne() + " and --file exclude each other", "each line of the file sets it for its task"}
	case c.File != "" && c.Strict:
		return &usageError{"--strict and --file exclude each other", "leave out --strict: a note names the types that no instance handles"}
	case c.File != "":
		return c.file(ctx, a)
	case c.Type == "":
		return &usageError{"neither a task type nor --file", "onbeat enqueue TYPE, or onbeat enqueue --file tasks.jsonl"}
	}
	return c.one(ctx, a)
}

// ofOne returns the first set flag that describes a single task, or "".
func (c *enqueueCmd) ofOne() string {
	for _, f := range []struct {
		name string
		said bool
	}{
		{"payload", c.Payload != ""}, {"in", c.In != ""}, {"at", c.At != ""}, {"id", c.ID != nil}, {"unique", c.Unique != nil},
		{"unique-for", c.UniqueFor != ""}, {"queue", c.Queue != nil}, {"priority", c.Priority != ""}, {"timeout", c.Timeout != ""},
		{"max-attempts", c.MaxAttempts != nil}, {"backoff", c.Backoff != ""}, {"backoff-cap", c.BackoffCap != ""}, {"key", c.Key != nil},
		{"key-limit", c.KeyLimit != 0}, {"keep", c.Keep != ""},
	} {
		if f.said {
			return "--" + f.name
		}
	}
	return ""
}

func (c *enqueueCmd) spec(ctx context.Context, a *app) (*admin.TaskSpec, error) {
	s := &admin.TaskSpec{
		Type: c.Type, ID: c.ID, In: c.In, At: c.At, Queue: c.Queue, Priority: c.Priority, Timeout: c.Timeout,
		MaxAttempts: c.MaxAttempts, Backoff: c.Backoff, BackoffCap: c.BackoffCap, Unique: c.Unique, UniqueFor: c.UniqueFor,
		Key: c.Key, KeyLimit: c.KeyLimit, Keep: c.Keep,
	}
	if midnight, err := time.ParseInLocation(time.DateOnly, c.At, time.Local); err == nil { // a file has no local zone
		s.At = midnight.Format(time.RFC3339)
	}
	var err error
	s.Payload, err = a.payloadFlag(ctx, c.Payload)
	return s, err
}

func (c *enqueueCmd) one(ctx context.Context, a *app) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	spec, err := c.spec(ctx, a)
	if err != nil {
		return err
	}
	t, err := newChecker(target.limits()).task(spec)
	if err != nil {
		return err
	}
	client, err := a.connectTo(ctx, target)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Instances.List(ctx)
	if err != nil && c.Strict { // a producer may be allowed to add tasks only
		return fmt.Errorf("--strict asks for the instances: %w", err)
	}
	why := ""
	if err == nil {
		why = unhandled(&list, t.Type, t.Queue)
	}
	if why != "" && c.Strict {
		return &failure{errors.New(why), "mend the type or the queue, or leave out --strict: the task then waits until an instance handles it"}
	}
	a.carryTrace([]*task.Task{t})
	done, err := client.Tasks.Enqueue(ctx, []*task.Task{t})
	if errors.Is(err, task.ErrUnreplicated) {
		again := "with --id " + t.ID
		if t.ID == "" { // an API has made one
			again = "if onbeat tasks list --type " + t.Type + " does not have the task"
		}
		return &failure{err, "the task is added, but lost if the primary is lost now: when the replicas are back, repeat the command " + again}
	}
	if err != nil {
		return err
	}
	if why != "" && done[0].Err == nil {
		fmt.Fprintf(a.err, "onbeat: note: %s: the task waits until one does\n", why)
	}
	return a.printEnqueued(done[0], t)
}

func (a *app) printEnqueued(e admin.Enqueued, t *task.Task) error {
	there := e.There()
	if e.Err != nil && there == nil {
		return e.Err
	}
	if a.JSON {
		if err := a.printJSON(e); err != nil {
			return err
		}
	} else if there == nil {
		a.printf("%s", e.ID)
	}
	switch {
	case there == nil:
		return nil
	case there.By == "unique":
		return fmt.Errorf("already there: task %q holds the unique key %q", e.ID, t.UniqueKey)
	}
	return fmt.Errorf("already there: task %q", e.ID)
}
