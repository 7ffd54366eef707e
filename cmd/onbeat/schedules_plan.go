package main

import (
	"context"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// planSchedules shows what apply would do. For a config it also shows what a release that leads with it retires. It writes nothing.
func (a *app) planSchedules(ctx context.Context, cl *client, f *config.File) error {
	plans, list := []admin.Plan{}, f.Schedules
	for i := range list {
		plan, err := cl.Schedules.Plan(ctx, list[i])
		if err != nil {
			return err
		}
		plan = plan.Masked()
		plans = append(plans, plan)
		if !a.JSON {
			a.printPlan(&plan, &list[i])
		}
	}
	retired, err := retires(ctx, cl, f)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(append(plans, retired...))
	}
	a.printRetired(f, retired)
	return nil
}

func (a *app) printPlan(p *admin.Plan, s *producer.Schedule) {
	more := ""
	switch {
	case p.Result == "would make":
		more = ": " + schedule.Describe(s.Rule) + ", task " + s.Task
	case p.DeclaredBy != "":
		more = ", until the next leader of " + p.DeclaredBy + " declares it again"
	}
	a.printf("%s %s%s", a.wordStyle(p.Result), p.Name, more)
	for _, c := range p.Changes {
		a.printf("  %s: %s → %s", c.Field, orNotSet(c.From), orNotSet(c.To))
	}
}

func orNotSet(value string) string {
	if value == "" {
		return "(not set)"
	}
	return value
}
