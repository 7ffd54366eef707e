package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
)

type schedulesTriggerCmd struct {
	Name    string `arg:"" predict:"schedule" help:"Schedule."`
	Payload string `short:"p" placeholder:"JSON" predict:"file" help:"Payload in place of the schedule's: ${payloadHelp}"`
}

// Run runs a schedule's task once.
func (c *schedulesTriggerCmd) Run(ctx context.Context, a *app) error {
	payload, err := a.payloadFlag(ctx, c.Payload)
	if err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	id, err := cl.Schedules.Trigger(ctx, c.Name, payload)
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	if a.JSON {
		return a.printJSON(admin.Enqueued{ID: id})
	}
	a.printf("%s", id)
	return nil
}

type schedulesBackfillCmd struct {
	Name   string `arg:"" predict:"schedule" help:"Schedule."`
	From   string `required:"" placeholder:"T" help:"First slot at or after this time: RFC 3339, a date, or how long ago."`
	To     string `placeholder:"T" help:"Last slot at or before this time. Default now."`
	Again  bool   `help:"Also run the slots that a backfill of the last seven days has run."`
	Failed bool   `help:"Only the slots that failed, were missed, skipped, cancelled or lost."`
	Dry    bool   `name:"dry-run" help:"Only count the slots."`
}

// Run runs the slots in a range of time again.
func (c *schedulesBackfillCmd) Run(ctx context.Context, a *app) error {
	moments := func(now time.Time) (from, to time.Time, err error) {
		if from, err = parseMoment("from", c.From, now); err == nil {
			to, err = parseMoment("to", c.To, now)
		}
		return from, to, err
	}
	if _, _, err := moments(time.Now()); err != nil { // before it connects
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	// The clock of Redis decides when now is, and how long ago a time was: this machine's clock may be ahead of it.
	there, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	from, to, err := moments(there)
	if err != nil {
		return err
	}
	if to.IsZero() {
		if to = there; from.After(to) {
			return refuse("from", c.From, "is in the future", "name a time that has come: its slots run again")
		}
	}
	p := a.progress()
	got, err := cl.Schedules.Backfill(ctx, c.Name, producer.Backfilling{
		From: from, To: to, Again: c.Again, Failed: c.Failed, DryRun: c.Dry, Progress: func(done, of int) { p.say("%d of %d slots", done, of) },
	})
	p.clear()
	if err != nil && got.Added > 0 {
		return fmt.Errorf("added %d of %d slots before that: %w", got.Added, got.Slots, inWords(err))
	}
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	switch {
	case a.JSON:
		err = a.printJSON(got)
	case c.Dry:
		a.printf("would add %d of %d slots", got.Added, got.Slots)
	default:
		c.told(a, &got)
	}
	if err == nil && got.Refused > 0 {
		err = fmt.Errorf("%s refused, and will not run: %s", wording.Count(int64(got.Refused), "slot was", "slots were"), got.Why.Err().Error())
	}
	return err
}

// told prints what became of the slots that were not refused.
func (c *schedulesBackfillCmd) told(a *app, got *admin.Backfilled) {
	a.printf("added %d of %d slots", got.Added, got.Slots)
	left := got.Slots - got.Added - got.Refused
	switch {
	case left == 0:
	case c.Again:
		a.printf("%d of an earlier backfill wait or run now", left)
	default:
		a.printf("an earlier backfill added %d; to run those again, pass --again", left)
	}
}

// actor returns the name of the command's user for events: user@host.
func actor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
