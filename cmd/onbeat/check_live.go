package main

import (
	"context"
	"errors"
	"slices"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/producer"
)

// willRetire is what becomes of a schedule that the live release declares and a config does not, once a release leads with that config.
const willRetire = "will be retired"

// retires returns the schedules that are retired when a release leads with the config. A file without the key schedules declares nothing,
// and so retires nothing; nor does a list of schedules alone, which is only applied.
func retires(ctx context.Context, cl *client, f *config.File) ([]admin.Plan, error) {
	plans := []admin.Plan{}
	if f.Alone || f.Schedules == nil {
		return plans, nil
	}
	live, err := cl.Schedules.List(ctx)
	err = errors.Join(err, lacking(absent(live.CouldNotAsk)))
	for i := range live.Items {
		s := &live.Items[i]
		if s.Origin == producer.Declared && !slices.ContainsFunc(f.Schedules, func(x producer.Schedule) bool { return x.Name == s.Name }) {
			plans = append(plans, admin.Plan{Name: s.Name, Result: willRetire, Declared: true, DeclaredBy: s.Release})
		}
	}
	return plans, err // the error is also of schedules that a newer release wrote: nobody knows whether they stay
}

// printRetired says what will be retired, and how to keep it.
func (a *app) printRetired(f *config.File, plans []admin.Plan) {
	if len(plans) == 0 {
		return
	}
	for i := range plans {
		by := "declared"
		if plans[i].DeclaredBy != "" {
			by += " by " + plans[i].DeclaredBy
		}
		a.printf("%s %s (%s)", a.style.yellow(willRetire+":"), plans[i].Name, by)
	}
	if len(f.Schedules) == 0 {
		a.printf("  the list of schedules is empty: it retires all that a release declared; to retire none, leave the key schedules out")
		return
	}
	a.printf("  to keep one, declare it in %s; a retired schedule that is declared again within 30 days comes back on its grid", f.Name)
}

// retiredBy asks the namespace of a config for what the config retires.
func (a *app) retiredBy(ctx context.Context, f *config.File) ([]admin.Plan, error) {
	t, err := a.targetFor(f)
	if err != nil {
		return nil, err
	}
	cl, err := a.connectTo(ctx, t)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return retires(ctx, cl, f)
}
