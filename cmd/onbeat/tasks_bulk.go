package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// taskFilter names many tasks at once.
type taskFilter struct {
	All      bool   `help:"Every task that the filters below match."`
	Queue    string `placeholder:"Q" help:"With --all: only of this queue."`
	Type     string `placeholder:"T" help:"With --all: only of this type."`
	Schedule string `placeholder:"S" predict:"schedule" help:"With --all: only of this schedule."`
	DryRun   bool   `help:"With --all: only count them."`
}

// check refuses names and filters that exclude each other.
func (f *taskFilter) check(ids []string) error {
	if f.All == (len(ids) > 0) {
		return &usageError{"which tasks?", "name some, or --all for every one that --queue, --type and --schedule match"}
	}
	for _, v := range []struct{ name, value string }{{"queue", f.Queue}, {"type", f.Type}, {"schedule", f.Schedule}} {
		if !f.All && v.value != "" {
			return refuse(v.name, v.value, "without --all", "")
		}
	}
	if !f.All && f.DryRun {
		return refuse("dry-run", "", "without --all", "")
	}
	return nil
}

// bulk is what came of a change of many tasks.
type bulk struct {
	Matched    int  `json:"matched"`
	Changed    int  `json:"changed"`
	Unreadable int  `json:"unreadable"` // and so left alone
	DryRun     bool `json:"dry_run"`
}

// forEach calls do with each page of the tasks that are in one of these states and that the filter matches; it returns how many it
// changed. With --dry-run the tasks are only counted. A task that changes its state meanwhile may be met in both, or in none.
func (f *taskFilter) forEach(ctx context.Context, a *app, doing string, states []task.State, do func(*client, []queue.Found) (int, error)) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p := a.progress()
	out := bulk{DryRun: f.DryRun}
	for _, state := range states {
		for after := ""; ; {
			page, err := cl.Queue().List(ctx, state, queue.ListOptions{Queue: f.Queue, Type: f.Type, Schedule: f.Schedule, Limit: queue.MaxBatch, After: after})
			if err != nil {
				return err
			}
			var readable []queue.Found
			for _, t := range page.Tasks {
				if t.Unreadable != nil || t.Task.Type == "" {
					out.Unreadable++ // its record is of a newer release, or damaged
					continue
				}
				readable = append(readable, t)
			}
			out.Matched += len(readable)
			if !f.DryRun {
				n, err := do(cl, readable)
				out.Changed += n
				if err != nil {
					p.clear()
					return fmt.Errorf("%d of the %d tasks looked at so far are %s: %w", out.Changed, out.Matched, doing, err)
				}
			}
			p.say("%d tasks", out.Matched)
			if after = page.Next; after == "" {
				break
			}
		}
	}
	p.clear()
	return out.print(a, doing)
}

func (b bulk) print(a *app, doing string) error {
	if a.JSON {
		return a.printJSON(b)
	}
	if b.DryRun {
		a.printf("%d tasks would be %s", b.Matched, doing)
	} else {
		a.printf("%d of %d tasks %s", b.Changed, b.Matched, doing)
	}
	if b.Unreadable > 0 {
		a.printf("%d more cannot be read, and are left alone", b.Unreadable)
	}
	return nil
}

// oneByOne does something to tasks, one after the other. A task that is gone by then, or not in that state any more, is not
// counted.
func oneByOne(do func(cl *client, id string) error) func(*client, []queue.Found) (int, error) {
	return func(cl *client, list []queue.Found) (n int, err error) {
		for i := range list {
			switch err := do(cl, list[i].Task.ID); {
			case errors.Is(err, queue.ErrNotFound):
			case err != nil:
				return n, err
			default:
				n++
			}
		}
		return n, nil
	}
}
