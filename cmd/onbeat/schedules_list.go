package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/instance"
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
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Schedule.Name
	}
	latest, err := cl.Schedules().Latest(ctx, names)
	if err != nil {
		return err
	}
	instances, err := cl.Instances().List(ctx)
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
		if err := a.printSchedulesJSON(list, latest); err != nil {
			return err
		}
	case len(list) == 0:
		a.printf("no schedules in %s", cl.cfg.Namespace)
	default:
		a.scheduleTable(list, latest, now).print(a.out)
		if !slices.ContainsFunc(instances, func(i instance.Info) bool { return i.Lease > 0 }) {
			a.printf("\n%s", a.style.red("✗ no instance runs: no slot begins until one does"))
		}
	}
	return unread
}

func (a *app) printSchedulesJSON(list []producer.Status, latest map[string]*producer.Latest) error {
	lines := make([]json.RawMessage, len(list))
	for i := range list {
		b, err := withMore(&list[i], struct {
			Latest *latestLine `json:"latest,omitempty"`
		}{latestOf(latest[list[i].Schedule.Name])})
		if err != nil {
			return err
		}
		lines[i] = b
	}
	return a.printJSON(listOf(lines, ""))
}

// latestLine is how the last runs of a schedule went, in JSON.
type latestLine struct {
	Run      producer.Run `json:"run"`
	Failures int          `json:"failures"` // in a row
	Success  time.Time    `json:"last_success,omitzero"`
}

func latestOf(l *producer.Latest) *latestLine {
	if l == nil {
		return nil
	}
	return &latestLine{l.Run, l.Failures, l.Success}
}

func (a *app) scheduleTable(list []producer.Status, latest map[string]*producer.Latest, now time.Time) *table {
	t := a.table("NAME", "WHEN", "TASK", "NEXT", "LAST RUN", "OUTCOME", "STATE")
	for i := range list {
		s := &list[i]
		loc := s.Schedule.Location()
		state := cell{text: scheduleState(s)}
		if s.Paused {
			state.paint = a.style.yellow
		}
		l := latest[s.Schedule.Name]
		ran := cell{"-", a.style.dim}
		if l != nil {
			ran.text = ago(l.Run.Began, now)
		}
		t.add(cell{s.Schedule.Name, a.style.bold}, shortWhen(s.Schedule.Rule), s.Schedule.Task, both(s.Next.In(loc), now),
			ran, a.outcome(s, l, now), state)
	}
	return t
}

// staleAfter is for how many of its intervals a schedule may have no success before it is called stale.
const staleAfter = 3

// outcome says how the last run went: how many have failed in a row, and for how many intervals there was no success, if that is
// many.
func (a *app) outcome(s *producer.Status, l *producer.Latest, now time.Time) cell {
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
	if every := s.Next.Sub(s.Last); !s.Paused && !s.Last.IsZero() && every > 0 && !l.Success.IsZero() {
		if n := int64(now.Sub(l.Success) / every); n >= staleAfter {
			c = cell{fmt.Sprintf("%s, none done for %d intervals", c.text, n), a.style.red}
		}
	}
	return c
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
