package main

import (
	"context"
	"errors"
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
	Retired bool `help:"List schedules that a newer release does not declare. They come back when their release is in force again."`
	Reveal  bool `help:"With --json: show the secret values of payloads too."`
}

// Run lists the schedules.
func (c *schedulesListCmd) Run(ctx context.Context, a *app) error {
	if c.Deleted && c.Retired {
		return refuse("retired", "true", "not together with deleted", "ask for one of them")
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if c.Deleted || c.Retired {
		return c.listGone(ctx, a, cl)
	}
	instances, err := cl.Instances.List(ctx) // first: no slot that is next came before it
	if err != nil {
		return err
	}
	list, unread := cl.Schedules.List(ctx)
	if len(list.Items) == 0 && unread != nil {
		return unread
	}
	unread = errors.Join(unread, lacking(list.CouldNotAsk))
	if !c.Reveal {
		list = admin.MaskedList(list)
	}
	if a.JSON {
		if err := a.printJSON(list); err != nil {
			return err
		}
		return unread
	}
	if len(list.Items) == 0 && len(list.CouldNotAsk) == 0 {
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
	t := a.table("NAME", "WHEN", "TASK", "NEXT", "LAST RUN", "OUTCOME", "HEALTH", "FROM")
	for i := range list {
		s := &list[i]
		rule := s.Rule
		ran := cell{"-", a.style.dim}
		if s.Latest != nil {
			ran.text = wording.Ago(s.Latest.Run.Began, now)
		}
		t.add(cell{s.Name, a.style.bold}, shortWhen(rule), s.Task, both(s.Next.In(rule.Location()), now), ran, a.outcome(s), a.health(s, now), whose(s))
	}
	return t
}

// outcome shows how the last run went, and how many runs failed in a row.
func (a *app) outcome(s *admin.Schedule) cell {
	l := s.Latest
	if l == nil {
		return cell{text: "-"}
	}
	c := cell{text: string(l.Run.Outcome)}
	switch {
	case l.Failures > 1:
		c = cell{fmt.Sprintf("%s, %d attempts in a row", c.text, l.Failures), a.style.red}
	case l.Failures == 1:
		c.paint = a.style.red
	case l.Run.Outcome == history.Done:
		c.paint = a.style.green
	}
	return c
}

// longestShownReason is how much of the reason of a pause a table has room for. onbeat schedules show has it whole.
const longestShownReason = 40

// health shows how the schedule is, in the words of onbeat status.
func (a *app) health(s *admin.Schedule, now time.Time) cell {
	c := cell{string(s.Health), a.style.green}
	switch {
	case s.Health.Bad():
		c.paint = a.style.red
	case s.Health != admin.Well:
		c.paint = a.style.yellow
	}
	if !s.Since.IsZero() {
		c.text += " for " + wording.Span(now.Sub(s.Since))
	}
	if s.Health == admin.Paused && s.Pause != nil && s.Pause.Reason != "" {
		c.text += ": " + wording.Cut(s.Pause.Reason, longestShownReason)
	}
	return c
}

// shortWhen returns the part of a rule's description that says when.
func shortWhen(r schedule.Rule) string {
	when, _, _ := strings.Cut(schedule.Describe(r), ", ")
	return when
}

// whose says where the schedule comes from.
func whose(s *admin.Schedule) string {
	if s.Origin == producer.Declared && s.Release != "" {
		return s.Origin + " by " + s.Release
	}
	return s.Origin
}

// scheduleState says whether the schedule runs, and where it comes from.
func scheduleState(s *admin.Schedule) string {
	switch {
	case s.Deleted != nil && s.Paused:
		return "paused, " + whose(s)
	case s.Deleted != nil:
		return whose(s)
	case s.Retired != nil && s.Retired.Release != "":
		return "retired by " + s.Retired.Release + ", " + whose(s)
	case s.Retired != nil:
		return "retired, " + whose(s)
	case s.Paused:
		return "paused, " + whose(s)
	case s.Next.IsZero() && !s.Anchor.IsZero():
		return "ended, " + whose(s)
	}
	return whose(s)
}
