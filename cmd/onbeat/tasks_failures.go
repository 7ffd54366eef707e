package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
)

type tasksFailuresCmd struct {
	Queue    string `placeholder:"Q" help:"Only tasks in this queue. * stands for any text, also in --type and --schedule."`
	Type     string `placeholder:"T" help:"Only tasks of this type."`
	Schedule string `placeholder:"NAME" predict:"schedule" help:"Only tasks of this schedule."`
	Key      string `placeholder:"KEY" help:"Only tasks with this key."`
	Error    string `placeholder:"TEXT" help:"Only tasks with this last error. * stands for any text."`
}

// Help is shown by onbeat tasks failures --help.
func (c *tasksFailuresCmd) Help() string {
	return "Errors that differ only by times, IDs and other long numbers are one. Retry a group with " +
		"onbeat tasks retry --all --type TYPE --error ERROR."
}

// Run groups the dead tasks by type and error.
func (c *tasksFailuresCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	filter := admin.TaskFilter{Queue: c.Queue, Type: c.Type, Schedule: c.Schedule, Key: c.Key, Error: c.Error}
	groups, err := allFailures(ctx, cl.Tasks, filter)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(admin.ListOf(groups, ""))
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	sum := 0
	t := a.table("TASKS", "TYPE", "SCHEDULES", "DIED LAST", "ERROR")
	for i := range groups {
		g := &groups[i]
		sum += g.Tasks
		t.add(fmt.Sprint(g.Tasks), cmp.Or(g.Type, "unreadable"), schedulesOf(g), wording.Ago(g.Newest, now), wording.OneLine(g.Error))
	}
	if len(groups) > 0 {
		t.print(a.out)
		a.printf("")
	}
	a.printf("%s", a.style.dim(fmt.Sprintf("%s dead, of %s", wording.Count(int64(sum), "task", "tasks"), wording.Count(int64(len(groups)), "error", "errors"))))
	return nil
}

// schedulesOf names the schedules of a group: the first three.
func schedulesOf(g *admin.FailureGroup) string {
	const most = 3
	text := strings.Join(g.Schedules[:min(len(g.Schedules), most)], ", ")
	if len(g.Schedules) > most || g.MoreSchedules {
		text += ", …"
	}
	return text
}

// allFailures reads all pages, and adds up the groups that are on more than one.
func allFailures(ctx context.Context, t admin.Tasks, filter admin.TaskFilter) ([]admin.FailureGroup, error) {
	var groups []admin.FailureGroup
	q := admin.FailureQuery{TaskFilter: filter}
	for {
		page, err := t.Failures(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, g := range page.Items {
			i := slices.IndexFunc(groups, func(x admin.FailureGroup) bool { return x.Type == g.Type && x.Error == g.Error })
			if i < 0 {
				groups = append(groups, g)
				continue
			}
			groups[i].Add(g)
		}
		if err := lacking(page.CouldNotAsk); err != nil {
			return nil, err
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	slices.SortStableFunc(groups, func(a, b admin.FailureGroup) int { return cmp.Compare(b.Tasks, a.Tasks) })
	return groups, nil
}
