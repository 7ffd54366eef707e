package main

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type previewCmd struct {
	Cron       string   `placeholder:"EXPR" help:"Cron expression of five fields, or six with seconds first."`
	Every      interval `placeholder:"D" help:"Interval: 250ms, 1h30m, 2d."`
	Timezone   string   `placeholder:"TZ" help:"IANA zone that cron is read in. Default UTC."`
	From       string   `placeholder:"T" help:"Show slots after this time. Default now. With --every, slot zero."`
	Until      string   `placeholder:"T" help:"Last moment a slot may have."`
	Start      string   `placeholder:"S" help:"aligned, or a time."`
	Count      int      `default:"10" placeholder:"N" help:"How many slots. Default 10."`
	DSTGap     string   `name:"dst-gap" placeholder:"P" values:"skip,after" help:"skip or after."`
	DSTOverlap string   `name:"dst-overlap" placeholder:"P" values:"first,second,both" help:"first, second or both."`
	Jitter     duration `placeholder:"D" help:"Longest delay of a slot's due time."`
	Name       string   `default:"preview" placeholder:"NAME" help:"Name that the jitter is computed for."`
}

// Run shows the next slots.
func (c *previewCmd) Run(_ context.Context, a *app) error {
	now := time.Now()
	r, from, err := c.rule(now)
	if err != nil {
		return err
	}
	if c.Count < 1 || c.Count > 100_000 {
		return refuse("count", fmt.Sprint(c.Count), "out of range", "1 to 100000")
	}
	grid, err := r.Grid(r.FirstAnchor(from))
	if err != nil {
		return err
	}
	lines := slotLines(r, c.Name, grid, from.Add(-time.Millisecond), now, c.Count)
	if a.JSON {
		return a.printJSON(struct {
			Rule  string     `json:"rule"`
			Slots []slotLine `json:"slots"`
		}{schedule.Describe(r), lines})
	}
	a.printf("%s", a.style.bold(schedule.Describe(r)))
	if len(lines) == 0 {
		a.printf("no slots")
		return nil
	}
	t := a.slotTable(lines, now)
	t.print(a.out)
	return nil
}

func (c *previewCmd) rule(now time.Time) (schedule.Rule, time.Time, error) {
	r := schedule.Rule{
		Cron: c.Cron, Every: time.Duration(c.Every), Timezone: c.Timezone, Start: c.Start, Jitter: time.Duration(c.Jitter),
		DST: schedule.DST{Gap: schedule.GapPolicy(c.DSTGap), Overlap: schedule.OverlapPolicy(c.DSTOverlap)},
	}
	from := now
	var err error
	if c.From != "" {
		if from, err = task.ParseTime("from", c.From); err != nil {
			return r, from, err
		}
	}
	if c.Until != "" {
		if r.Until, err = task.ParseTime("until", c.Until); err != nil {
			return r, from, err
		}
	}
	return r, from, r.Validate()
}
