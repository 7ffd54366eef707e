package main

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// taskFilter selects many tasks at once.
type taskFilter struct {
	All      bool   `help:"Every task that the filters below match."`
	Queue    string `placeholder:"Q" help:"With --all: only tasks in this queue."`
	Type     string `placeholder:"T" help:"With --all: only tasks of this type."`
	Schedule string `placeholder:"S" predict:"schedule" help:"With --all: only tasks of this schedule."`
	Key      string `placeholder:"KEY" help:"With --all: only tasks with this key."`
	Error    string `placeholder:"TEXT" help:"With --all: only tasks whose last error is this one, but for times, IDs and other long numbers in it. * stands for any text."`
	DryRun   bool   `help:"With --all: only count them."`
}

// check refuses names and filters that exclude each other.
func (f *taskFilter) check(ids []string) error {
	if f.All == (len(ids) > 0) {
		return &usageError{"which tasks?", "name some, or --all for every one that --queue, --type, --schedule, --key and --error match"}
	}
	for _, v := range []struct{ name, value string }{{"queue", f.Queue}, {"type", f.Type}, {"schedule", f.Schedule}, {"key", f.Key}, {"error", f.Error}} {
		if !f.All && v.value != "" {
			return onlyWithAll(v.name)
		}
	}
	if !f.All && f.DryRun {
		return onlyWithAll("dry-run")
	}
	return nil
}

// bulk applies an action to every task that the filter matches, page by page. With --dry-run it only counts the tasks.
func (f *taskFilter) bulk(ctx context.Context, a *app, doing string, action admin.Action, state task.State) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p := a.progress()
	sum := admin.BulkResult{}
	b := admin.Bulk{
		Action: action, DryRun: f.DryRun,
		Filter: admin.TaskFilter{State: state, Queue: f.Queue, Type: f.Type, Schedule: f.Schedule, Key: f.Key, Error: f.Error},
	}
	for {
		page, err := cl.Tasks.Bulk(ctx, b)
		sum.Add(page)
		if err != nil {
			p.clear()
			return fmt.Errorf("after %d tasks, of which %d are %s: %w", sum.Matched, sum.Changed, doing, err)
		}
		p.say("%d tasks", sum.Matched)
		if b.After = page.Next; b.After == "" {
			break
		}
	}
	p.clear()
	return a.printBulk(&sum, doing)
}

func (a *app) printBulk(b *admin.BulkResult, doing string) error {
	if a.JSON {
		return a.printJSON(b)
	}
	if b.DryRun {
		a.printf("%d tasks would be %s", b.Matched, doing)
	} else {
		a.printf("%d of %d tasks %s", b.Changed, b.Matched, doing)
	}
	if b.Unreadable > 0 {
		a.printf("onbeat cannot read %d more, and leaves them alone", b.Unreadable)
	}
	return nil
}
