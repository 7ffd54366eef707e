package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// taskFilter selects many tasks at once.
type taskFilter struct {
	All      bool   `help:"Every task that the filters below match."`
	Queue    string `placeholder:"Q" help:"With --all: only tasks in this queue."`
	Type     string `placeholder:"T" help:"With --all: only tasks of this type."`
	Schedule string `placeholder:"S" predict:"schedule" help:"With --all: only tasks of this schedule."`
	Backfill bool   `help:"With --all: only tasks of backfills."`
	Key      string `placeholder:"KEY" help:"With --all: only tasks with this key."`
	Error    string `placeholder:"TEXT" help:"With --all: only tasks whose last error is this one, but for times, IDs and other long numbers in it. * stands for any text."`
	Reason   string `placeholder:"TEXT" help:"With --all: why; the events show it."`
	DryRun   bool   `help:"With --all: only count them."`
}

// check refuses names and filters that exclude each other.
func (f *taskFilter) check(ids []string) error {
	if f.All == (len(ids) > 0) {
		return &usageError{"which tasks?", "name some, or --all for every one that --queue, --type, --schedule, --key and --error match"}
	}
	for _, v := range []struct{ name, value string }{{"queue", f.Queue}, {"type", f.Type}, {"schedule", f.Schedule}, {"key", f.Key}, {"error", f.Error}, {"reason", f.Reason}} {
		if !f.All && v.value != "" {
			return onlyWithAll(v.name)
		}
	}
	if !f.All && f.Backfill {
		return onlyWithAll("backfill")
	}
	if !f.All && f.DryRun {
		return onlyWithAll("dry-run")
	}
	return nil
}

// bulkPatience is how long a command waits for an instance that goes on with its bulk action. Then it does the pages itself.
const bulkPatience = 5 * time.Second

// lookPatience is how long a command that follows a bulk action looks again while Redis or the API does not answer.
const lookPatience = 30 * time.Second

// bulk applies an action to every task that the filter matches: an instance does it, or this process if none takes it. With --dry-run it
// only counts the tasks.
func (f *taskFilter) bulk(ctx context.Context, a *app, doing string, action admin.Action, state admin.TaskState) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p := a.progress()
	defer p.clear()
	spec := admin.BulkSpec{
		Action: action, Filter: admin.TaskFilter{State: state, Queue: f.Queue, Type: f.Type, Schedule: f.Schedule, Backfill: f.Backfill, Key: f.Key, Error: f.Error}, Reason: f.Reason,
	}
	sum := admin.BulkResult{DryRun: f.DryRun}
	say := func() { p.say("%d tasks", sum.Matched) }
	if f.DryRun {
		err = eachPage(ctx, cl, spec, &sum, say)
	} else {
		err = followBulk(ctx, cl, spec, &sum, say)
	}
	p.clear()
	least := ""
	if sum.AtLeast {
		least = "at least "
	}
	switch {
	case err != nil && sum.Matched == 0 && least == "":
		return err
	case err != nil && f.DryRun:
		return fmt.Errorf("after %d tasks: %w", sum.Matched, inWords(err))
	case err != nil:
		return fmt.Errorf("after %s%d tasks, of which %s%d are %s: %w", least, sum.Matched, least, sum.Changed, doing, inWords(err))
	}
	return a.printBulk(&sum, least, doing)
}

// eachPage does page after page in this process, or counts them.
func eachPage(ctx context.Context, cl *client, s admin.BulkSpec, sum *admin.BulkResult, say func()) error {
	b := admin.Bulk{Action: s.Action, Filter: s.Filter, Reason: s.Reason, DryRun: sum.DryRun}
	for {
		page, err := cl.Tasks.Bulk(ctx, b)
		sum.Add(page)
		say()
		if b.After = page.Next; err != nil || b.After == "" {
			return err
		}
	}
}

// followBulk begins a bulk action and looks at it until it has ended. When ctx ends, followBulk stops the action. If no instance goes on
// with the action, followBulk stops it and does the rest in this process.
func followBulk(ctx context.Context, cl *client, s admin.BulkSpec, sum *admin.BulkResult, say func()) error {
	list, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	if _, ok := list.QueueOf(task.BulkType); !ok || list.PausedUntil.After(list.Now) {
		return eachPage(ctx, cl, s, sum, say)
	}
	x, err := cl.Bulks.Begin(ctx, s)
	if err != nil {
		return err
	}
	ran, heard := time.Now(), time.Now() // or when it has begun
	for wait := 10 * time.Millisecond; x.State.Open(); wait = min(2*wait, 250*time.Millisecond) {
		if x.State == admin.BulkRunning {
			ran = time.Now()
		}
		late := time.Since(ran) > bulkPatience
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		look, told := cl.Bulks.Get, ctx.Err() != nil
		if late || told {
			look = cl.Bulks.Stop
		}
		bound, done := context.WithTimeout(context.WithoutCancel(ctx), connectTime)
		seen, err := look(bound, x.ID)
		done()
		if err == nil {
			x, heard = seen, time.Now()
		}
		sum.Matched, sum.Changed, sum.Unreadable, sum.AtLeast = x.Matched, x.Changed, x.Unreadable, x.AtLeast
		say()
		switch {
		case told && err == nil && (x.State == admin.BulkDone || x.State == admin.BulkFailed): // before it could be stopped
		case told && err == nil:
			sum.AtLeast = true // of the page that it is at, nothing is noted yet
			return ctx.Err()
		case !told && store.Retryable(err) && time.Since(heard) < lookPatience:
		case err != nil:
			return &failure{err, `an instance goes on with it: "onbeat events" tells its end`}
		case late && x.State == admin.BulkStopped:
			sum.Matched, sum.Unreadable = sum.Changed, 0 // the rest is met again
			return eachPage(ctx, cl, s, sum, say)
		}
	}
	switch x.State {
	case admin.BulkFailed:
		return errors.New(x.Error)
	case admin.BulkStopped:
		return fmt.Errorf("stopped by %s", cmp.Or(x.StoppedBy, "nobody: its task was removed"))
	}
	return nil
}

func (a *app) printBulk(b *admin.BulkResult, least, doing string) error {
	if a.JSON {
		return a.printJSON(b)
	}
	if b.DryRun {
		a.printf("%s would be %s", wording.Count(int64(b.Matched), "task", "tasks"), doing)
	} else {
		a.printf("%s%d of %d tasks %s", least, b.Changed, b.Matched, doing)
	}
	if b.Unreadable > 0 {
		a.printf("onbeat cannot read %d more, and leaves them alone", b.Unreadable)
	}
	return nil
}
