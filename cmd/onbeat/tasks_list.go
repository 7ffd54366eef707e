package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
)

type tasksListCmd struct {
	State    string `placeholder:"S" values:"running,waiting,retrying,planned,dead,done" help:"running, waiting, retrying, planned, dead or done. Default: all."`
	Queue    string `placeholder:"Q" help:"Only tasks in this queue. * stands for any text, also in --type and --schedule."`
	Type     string `placeholder:"T" help:"Only tasks of this type."`
	Schedule string `placeholder:"NAME" predict:"schedule" help:"Only tasks of this schedule."`
	Backfill bool   `help:"Only tasks of backfills."`
	Key      string `placeholder:"KEY" help:"Only tasks with this key, such as those that wait for it."`
	Error    string `placeholder:"TEXT" help:"Only tasks with this last error; times, IDs and other long numbers may differ. * stands for any text."`
	Limit    int    `default:"100" placeholder:"N" help:"How many tasks to list at most, up to 1000. Default 100."`
	After    string `placeholder:"CURSOR" help:"Continue after this cursor, printed at the end of the page before. Pass the same filters."`
	Reveal   bool   `help:"With --json: show the secret values of payloads too."`
}

// Run lists tasks.
func (c *tasksListCmd) Run(ctx context.Context, a *app) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	page, err := cl.Tasks.List(ctx, q)
	if err != nil {
		return err
	}
	if !c.Reveal {
		page = admin.MaskedList(page)
	}
	if a.JSON {
		return errors.Join(a.printJSON(page), lacking(page.CouldNotAsk))
	}
	return errors.Join(c.print(ctx, a, cl, page), lacking(page.CouldNotAsk))
}

func (c *tasksListCmd) query() (admin.TaskQuery, error) {
	q := admin.TaskQuery{
		TaskFilter: admin.TaskFilter{Queue: c.Queue, Type: c.Type, Schedule: c.Schedule, Backfill: c.Backfill, Key: c.Key, Error: c.Error}, Limit: c.Limit, After: c.After,
	}
	if c.Limit < 1 || c.Limit > 1000 {
		return q, refuse("limit", fmt.Sprint(c.Limit), "out of range", "1 to 1000; go on with --after")
	}
	if c.State == "" {
		return q, nil
	}
	var err error
	q.State, err = admin.ParseTaskState(c.State)
	return q, err
}

func (c *tasksListCmd) print(ctx context.Context, a *app, cl *client, page admin.List[admin.Task]) error {
	n, err := cl.Activity.Counts(ctx)
	if err != nil {
		return err
	}
	if len(page.Items) > 0 {
		t := a.table("ID", "TYPE", "STATE", "WHEN", "ATTEMPTS", "QUEUE", "NOTE")
		for i := range page.Items {
			l := &page.Items[i]
			t.add(l.ID, l.Type, cell{string(l.State), a.stateStyle(l)}, whenOf(l, n.Now), attemptsOf(l), l.Queue,
				cell{noteOf(l), a.style.dim})
		}
		t.print(a.out)
		a.printf("")
	}
	a.printf("%s", a.style.dim(fmt.Sprintf("%d running, %d waiting (%d overdue, %d for their key), %d retrying or planned, %d dead, %d done and kept",
		n.Running, n.Waiting, n.Overdue, n.Held, n.Later, n.Dead, n.Done)))
	if page.Next != "" {
		a.printf("%s", a.style.dim("more: --after "+page.Next))
	}
	return nil
}

// noteOf returns the last error of a task, or the instance that runs it.
func noteOf(l *admin.Task) string {
	if l.Unreadable != "" {
		return clip(wording.OneLine(l.Unreadable), 80)
	}
	if l.State == admin.TaskRunning {
		return "on " + l.Instance
	}
	if n := len(l.Failures); n > 0 && l.State != admin.TaskDone {
		return clip(wording.OneLine(l.Failures[n-1].Error), 80)
	}
	return ""
}

// clip cuts text to at most this many characters.
func clip(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
