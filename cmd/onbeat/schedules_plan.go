package main

import (
	"context"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// planLine is what apply would do to one schedule.
type planLine struct {
	result
	Changes  []producer.FieldChange `json:"changes,omitempty"`
	Declared string                 `json:"declared_by,omitempty"` // the release that declares it again
}

// planSchedules shows what apply would do, and writes nothing.
func (a *app) planSchedules(ctx context.Context, cl *client, list []producer.Schedule) error {
	words := map[producer.ApplyResult]string{producer.Made: "would make", producer.Changed: "would change", producer.Unchanged: "unchanged"}
	lines := []planLine{}
	for i := range list {
		plan, err := cl.Schedules().Plan(ctx, list[i])
		if err != nil {
			return err
		}
		line := planLine{result{list[i].Name, words[plan.Result]}, plan.Changes, ""}
		if plan.Result == producer.Changed {
			line.Declared = plan.Release
		}
		lines = append(lines, line)
		if !a.JSON {
			a.printPlan(&line, &list[i])
		}
	}
	if a.JSON {
		return a.printJSON(lines)
	}
	return nil
}

func (a *app) printPlan(l *planLine, s *producer.Schedule) {
	more := ""
	switch {
	case l.Result == "would make":
		more = ": " + schedule.Describe(s.Rule) + ", task " + s.Task
	case l.Declared != "":
		more = ", until the next leader of " + l.Declared + " declares it again"
	}
	a.printf("%s %s%s", a.wordStyle(l.Result), l.Name, more)
	for _, c := range l.Changes {
		a.printf("  %s: %s → %s", c.Field, orNotSet(c.From), orNotSet(c.To))
	}
}

func orNotSet(value string) string {
	if value == "" {
		return "(not set)"
	}
	return value
}
