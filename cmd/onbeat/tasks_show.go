package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
)

type tasksShowCmd struct {
	ID     string `arg:"" help:"Task."`
	Reveal bool   `help:"Show the secret values of the payload too."`
}

// Run shows a task.
func (c *tasksShowCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	found, err := cl.Tasks.Get(ctx, c.ID)
	if err != nil {
		return noTask(c.ID, err)
	}
	if !c.Reveal {
		found = found.Masked()
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(found)
	}
	a.printTask(&found, now)
	return nil
}

func (a *app) printTask(l *admin.Task, now time.Time) {
	f := a.fields()
	state := string(l.State)
	if paint := a.stateStyle(l); paint != nil {
		state = paint(state)
	}
	f.add("id", a.style.bold(l.ID))
	if l.Unreadable != "" {
		f.add("state", state+", "+whenOf(l, now))
		f.add("record", l.Unreadable)
		f.print(a.out)
		return
	}
	f.add("type", l.Type)
	f.add("state", state+", "+whenOf(l, now))
	f.add("queue", strings.TrimSuffix(l.Queue+", "+l.Priority, ", "))
	if l.Schedule != "" {
		f.add("schedule", l.Schedule)
	}
	if !l.Slot.IsZero() {
		f.add("slot", at(l.Slot))
	}
	if !l.Due.IsZero() {
		f.add("due", at(l.Due))
	}
	if !l.Created.IsZero() {
		f.add("created", at(l.Created))
	}
	if l.State != admin.TaskGone {
		f.add("attempts", attemptsOf(l))
	}
	f.add("timeout", l.Timeout)
	f.add("key", l.Key)
	f.add("instance", l.Instance)
	if l.Fence > 0 {
		f.add("fence", fmt.Sprint(l.Fence))
	}
	f.add("payload", string(plainJSON(l.Payload))+l.PayloadText+l.Encrypted)
	f.print(a.out)
	for _, x := range l.Failures {
		a.printf("\n%s %s", a.style.red(fmt.Sprintf("attempt %d failed", x.Attempt)), a.style.dim(wording.Ago(x.At, now)+", on "+x.Instance))
		a.printf("  %s", block(strings.ReplaceAll(strings.TrimRight(x.Error, "\n"), "\n", "\n  ")))
	}
	a.printTaskRuns(l, now)
}

// printTaskRuns prints what the archive knows of the runs of a task.
func (a *app) printTaskRuns(l *admin.Task, now time.Time) {
	if l.RunsUnread != "" {
		a.printf("\n%s", a.style.yellow("! its runs are unknown: "+wording.OneLine(l.RunsUnread)))
	}
	if len(l.Runs) == 0 {
		return
	}
	a.printf("\n%s", a.style.bold("runs in the archive"))
	a.runsTable(l.Runs, now).print(a.out)
	for i := range l.Runs {
		if r := &l.Runs[i]; r.Output != "" {
			a.printf("\n%s", a.style.dim(fmt.Sprintf("attempt %d put out", r.Attempt)))
			a.printf("  %s", block(strings.ReplaceAll(strings.TrimRight(r.Output, "\n"), "\n", "\n  ")))
		}
	}
}
