package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

type schedulesListCmd struct{}

// Run lists the schedules.
func (c *schedulesListCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, unread := cl.Schedules().List(ctx)
	if list == nil && unread != nil {
		return unread
	}
	now, err := cl.Queue().Now(ctx)
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
		if err := a.printJSON(append([]producer.Status{}, list...)); err != nil {
			return err
		}
	case len(list) == 0:
		a.printf("no schedules in %s", cl.cfg.Namespace)
	default:
		t := a.scheduleTable(list, now)
		t.print(a.out)
	}
	return unread
}

func (a *app) scheduleTable(list []producer.Status, now time.Time) *table {
	t := a.table("NAME", "WHEN", "TASK", "NEXT", "LAST", "RUNS", "STATE")
	for i := range list {
		s := &list[i]
		loc := s.Schedule.Location()
		state := cell{text: scheduleState(s)}
		if s.Paused {
			state.paint = a.style.yellow
		}
		t.add(cell{s.Schedule.Name, a.style.bold}, shortWhen(s.Schedule.Rule), s.Schedule.Task, both(s.Next.In(loc), now),
			cell{ago(s.Last, now), a.style.dim}, fmt.Sprint(s.Runs), state)
	}
	return t
}

// shortWhen is the part of a rule's description that says when.
func shortWhen(r schedule.Rule) string {
	when, _, _ := strings.Cut(schedule.Describe(r), ", ")
	return when
}

// scheduleState says whether it runs, and whose it is.
func scheduleState(s *producer.Status) string {
	whose := s.Origin
	if s.Origin == producer.Declared && s.Release != "" {
		whose += " by " + s.Release
	}
	switch {
	case s.Retired != nil && s.Retired.Release != "":
		return "retired by " + s.Retired.Release + ", " + whose
	case s.Retired != nil:
		return "retired, " + whose
	case s.Paused:
		return "paused, " + whose
	case s.Next.IsZero() && !s.Anchor.IsZero():
		return "ended, " + whose
	}
	return whose
}
