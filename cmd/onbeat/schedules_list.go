package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

type schedulesListCmd struct {
	Deleted bool `help:"List deleted schedules that can be restored."`
	Reveal  bool `help:"With --json: show the secret values of payloads too."`
}

// Run lists the schedules.
func (c *schedulesListCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if c.Deleted {
		return a.listDeleted(ctx, cl, c.Reveal)
	}
	list, unread := cl.Schedules.List(ctx)
	if len(list.Items) == 0 && unread != nil {
		return unread
	}
	if !c.Reveal {
		list = admin.MaskedList(list)
	}
	if a.JSON {
		if err := a.printJSON(list); err != nil {
			return err
		}
		return unread
	}
	instances, err := cl.Instances.List(ctx)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		a.printf("no schedules in %s", cl.namespace)
		return unread
	}
	a.scheduleTable(list.Items, instances.Now).print(a.out)
	if !slices.ContainsFunc(instances.Items, func(i admin.Instance) bool { return i.LeaseLeftMS > 0 }) {
		a.printf("\n%s", a.style.red("✗ no instance runs: no slot begins until one does"))
	}
	return unread
}

func (a *app) scheduleTable(list []admin.Schedule, now time.Time) *table {
	t := a.table("NAME", "WHEN", "TASK", "NEXT", "LAST RUN", "OUTCOME", "STATE")
	for i := range list {
		s := &list[i]
		rule := s.Rule
		state := cell{text: scheduleState(s)}
		if s.Paused {
			state.paint = a.style.yellow
		}
		ran := cell{"-", a.style.dim}
		if s.Latest != nil {
			ran.text = wording.Ago(s.Latest.Run.Began, now)
		}
		t.add(cell{s.Name, a.style.bold}, shortWhen(rule), s.Task, both(s.Next.In(rule.Location()), now), ran, a.outcome(s, now), state)
	}
	return t
}

// staleAfter is how many slots without a success make a schedule stale.
const staleAfter = 3

// outcome shows how the last run went and how many runs failed in a row, or for how many slots no run succeeded if the schedule is
// stale.
func (a *app) outcome(s *admin.Schedule, now time.Time) cell {
	l := s.Latest
	if l == nil {
		return cell{text: "-"}
	}
	c := cell{text: string(l.Run.Outcome)}
	switch {
	case l.Failures > 1:
		c = cell{fmt.Sprintf("%s, %d in a row", c.text, l.Failures), a.style.red}
	case l.Failures == 1:
		c.paint = a.style.red
	case l.Run.Outcome == history.Done:
		c.paint = a.style.green
	}
	if grid, err := s.Grid(); err == nil && !s.Paused && !l.Success.IsZero() {
		// A success is known when its run has ended, and the next run may be as long.
		known := l.Success.Add(2 * max(l.Run.Ended.Sub(l.Run.Began), 0))
		if n := grid.Count(known, s.Last); n >= staleAfter {
			c = cell{fmt.Sprintf("%s, no success for %d slots", c.text, n), a.style.red}
		}
	}
	return c
}

// shortWhen returns the part of a rule's description that says when.
func shortWhen(r schedule.Rule) string {
	when, _, _ := strings.Cut(schedule.Describe(r), ", ")
	return when
}

// scheduleState says whether the schedule runs, and where it comes from.
func scheduleState(s *admin.Schedule) string {
	whose := s.Origin
	if s.Origin == producer.Declared && s.Release != "" {
		whose += " by " + s.Release
	}
	switch {
	case s.Deleted != nil && s.Paused:
		return "paused, " + whose
	case s.Deleted != nil:
		return whose
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
