package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/producer"
)

type schedulesRunsCmd struct {
	Name  string `arg:"" predict:"schedule" help:"Schedule."`
	Limit int    `default:"20" placeholder:"N" help:"List at least so many, if there are (default ${default})."`
	After string `placeholder:"CURSOR" help:"Go on behind this: the cursor that the page before ended with."`
}

// mostListed is the most runs of one page.
const mostListed = 10_000

// Run lists runs. What is not in the history any more, of a schedule that is there, is no error.
func (c *schedulesRunsCmd) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 || c.Limit > mostListed {
		return refuse("limit", fmt.Sprint(c.Limit), "out of range", fmt.Sprintf("1 to %d", mostListed))
	}
	if c.After != "" && !isCursor(c.After) {
		return refuse("after", c.After, "not a cursor", "the next of an earlier page")
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	runs, next, err := cl.Schedules().Runs(ctx, c.Name, c.After, c.Limit)
	if err != nil {
		return err
	}
	if len(runs) == 0 && c.After == "" {
		if _, err := cl.Schedules().Get(ctx, c.Name); err != nil {
			return cl.notFound(ctx, c.Name, err)
		}
	}
	if a.JSON {
		return a.printJSON(listOf(runs, next))
	}
	if len(runs) == 0 {
		a.printf("no runs of %s in the history", oneCell(c.Name))
		return nil
	}
	now, err := cl.Queue().Now(ctx)
	if err != nil {
		return err
	}
	a.runsTable(runs, now).print(a.out)
	if next != "" {
		a.printf("\n%s", a.style.dim("more: --after "+next))
	}
	return nil
}

// isCursor reports whether a text is the ID of an entry: <ms>-<n>.
func isCursor(s string) bool {
	ms, n, ok := strings.Cut(s, "-")
	digits := func(s string) bool {
		return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
	}
	return ok && digits(ms) && digits(n)
}

func (a *app) runsTable(runs []producer.Run, now time.Time) *table {
	t := a.table("SLOT", "BEGAN", "LAG", "TOOK", "ATTEMPT", "OUTCOME", "RELEASE", "INSTANCE", "")
	for i := range runs {
		r := &runs[i]
		outcome := cell{text: string(r.Outcome)}
		switch r.Outcome {
		case history.Done:
			outcome.paint = a.style.green
		case history.Failed, history.Dead, history.Lost:
			outcome.paint = a.style.red
		}
		slot, began, lag, took, attempt := "-", "-", "-", "-", "-"
		if !r.Slot.IsZero() {
			slot = at(r.Slot)
		}
		if !r.Began.IsZero() {
			began, attempt = ago(r.Began, now), fmt.Sprint(r.Attempt)
		}
		if r.OnGrid() {
			lag = r.Lag.String()
		}
		if r.Took != 0 {
			took = r.Took.String()
		}
		t.add(slot, began, lag, took, attempt, outcome, r.Release, r.Instance, strings.TrimSpace(r.Why+" "+r.Error))
	}
	return t
}
