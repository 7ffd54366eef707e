package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/wording"
)

type schedulesRunsCmd struct {
	Name  string `arg:"" predict:"schedule" help:"Schedule."`
	Limit int    `default:"20" placeholder:"N" help:"List at least this many runs, if there are so many (default ${default})."`
	After string `placeholder:"CURSOR" help:"Continue after this cursor, printed at the end of the page before."`
}

// mostListed is the largest --limit.
const mostListed = 10_000

// Run lists runs. It is no error if the history has no run of an existing schedule any more.
func (c *schedulesRunsCmd) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 || c.Limit > mostListed {
		return refuse("limit", fmt.Sprint(c.Limit), "out of range", fmt.Sprintf("1 to %d", mostListed))
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	runs, err := cl.Schedules.Runs(ctx, c.Name, c.Limit, c.After)
	if err != nil {
		return err
	}
	if len(runs.Items) == 0 && c.After == "" {
		if _, err := cl.Schedules.Get(ctx, c.Name); err != nil {
			return cl.notFound(ctx, c.Name, err)
		}
	}
	if a.JSON {
		return a.printJSON(runs)
	}
	if len(runs.Items) == 0 {
		a.printf("no runs of %s in the history", oneCell(c.Name))
		return nil
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	a.runsTable(runs.Items, now).print(a.out)
	if runs.Next != "" {
		a.printf("\n%s", a.style.dim("more: --after "+runs.Next))
	}
	return nil
}

func (a *app) runsTable(runs []admin.Run, now time.Time) *table {
	t := a.table("SLOT", "BEGAN", "LAG", "TOOK", "ATTEMPT", "OUTCOME", "RELEASE", "INSTANCE", "")
	for i := range runs {
		r := &runs[i]
		outcome := cell{text: string(r.Outcome)}
		switch r.Outcome {
		case history.Done:
			outcome.paint = a.style.green
		case history.Failed, history.Dead, history.Lost, history.Missed:
			outcome.paint = a.style.red
		}
		slot, began, attempt := "-", "-", "-"
		if !r.Slot.IsZero() {
			slot = at(r.Slot)
		}
		if r.Slots > 1 {
			slot += " … " + at(r.To)
			outcome.text = fmt.Sprintf("%d %s", r.Slots, outcome.text)
		}
		if !r.Began.IsZero() {
			began, attempt = wording.Ago(r.Began, now), fmt.Sprint(r.Attempt)
		}
		t.add(slot, began, dash(r.Lag), dash(r.Took), attempt, outcome, r.Release, r.Instance, strings.TrimSpace(r.Why+" "+r.Error))
	}
	return t
}
