package main

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/schedule"
)

// previewName is the name for which the jitter is computed if a rule has no schedule.
const previewName = "preview"

type previewCmd struct {
	Schedule string `arg:"" optional:"" predict:"schedule" help:"A schedule of the namespace, in place of a rule. preview reads it from Redis."`

	Cron       string   `placeholder:"EXPR" help:"Cron expression of five fields, or six with seconds first."`
	Every      interval `placeholder:"D" help:"Interval: 250ms, 1h30m, 2d."`
	Timezone   string   `placeholder:"TZ" help:"IANA time zone of the cron expression. Default UTC."`
	From       string   `placeholder:"T" help:"Show slots from this time on, inclusive. Default now. With --every, this time is slot zero."`
	Until      string   `placeholder:"T" help:"Show no slot after this time."`
	Start      string   `placeholder:"S" help:"Slot zero: aligned, or a time."`
	Count      int      `default:"10" placeholder:"N" help:"How many slots. Default 10."`
	DSTGap     string   `name:"dst-gap" placeholder:"P" values:"skip,after" help:"Policy for a slot in the hour that daylight saving skips: skip or after."`
	DSTOverlap string   `name:"dst-overlap" placeholder:"P" values:"first,second,both" help:"Slots to run in the hour that comes twice: first, second or both."`
	Jitter     duration `placeholder:"D" help:"Longest delay of a slot's due time."`
	Name       string   `default:"${previewName}" placeholder:"NAME" help:"Name of the schedule: the jitter depends on it."`
}

// Run shows the next slots.
func (c *previewCmd) Run(ctx context.Context, a *app) error {
	if c.Count < 1 || c.Count > 100_000 {
		return refuse("count", fmt.Sprint(c.Count), "out of range", "1 to 100000")
	}
	if c.Schedule != "" {
		return c.ofSchedule(ctx, a)
	}
	now := time.Now()
	r, from, err := c.rule(now)
	if err != nil {
		return err
	}
	grid, err := r.Grid(r.FirstAnchor(from))
	if err != nil {
		return err
	}
	p := admin.PreviewOf(r, c.Name, grid, from.Add(-time.Millisecond), now, c.Count)
	return a.showSlots(&p)
}

// ofSchedule shows the slots of a schedule on its own grid.
func (c *previewCmd) ofSchedule(ctx context.Context, a *app) error {
	if *c != (previewCmd{Schedule: c.Schedule, From: c.From, Count: c.Count, Name: previewName}) {
		return &usageError{"a schedule and a rule exclude each other", "with a schedule, use only --from and --count"}
	}
	var from time.Time
	var err error
	if c.From != "" {
		if from, err = parseMoment("from", c.From, time.Now()); err != nil {
			return err
		}
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	p, err := cl.Schedules.Slots(ctx, c.Schedule, from, c.Count)
	if err != nil {
		return cl.notFound(ctx, c.Schedule, err)
	}
	if p.Paused {
		fmt.Fprintf(a.err, "onbeat: note: %s is paused: these slots do not run before onbeat schedules resume %s\n", c.Schedule, c.Schedule)
	}
	return a.showSlots(&p)
}

func (a *app) showSlots(p *admin.Preview) error {
	if a.JSON {
		return a.printJSON(p)
	}
	a.printf("%s", a.style.bold(p.Rule))
	if len(p.Slots) == 0 {
		a.printf("no slots")
		return nil
	}
	t := a.slotTable(p.Slots)
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
		if from, err = parseMoment("from", c.From, now); err != nil {
			return r, from, err
		}
	}
	if c.Until != "" {
		if r.Until, err = parseMoment("until", c.Until, now); err != nil {
			return r, from, err
		}
	}
	return r, from, r.Validate()
}
