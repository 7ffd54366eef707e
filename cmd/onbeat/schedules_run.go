package main

import (
	"context"
	"time"
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
	id, err := cl.Schedules().Trigger(ctx, c.Name, payload)
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	if a.JSON {
		return a.printJSON(enqueued{ID: id, Added: true})
	}
	a.printf("%s", id)
	return nil
}

type schedulesBackfillCmd struct {
	Name string `arg:"" predict:"schedule" help:"Schedule."`
	From string `required:"" placeholder:"T" help:"First moment: RFC 3339, a date, or how long ago."`
	To   string `placeholder:"T" help:"Last moment. Default now."`
}

// Run runs the slots of a time again.
func (c *schedulesBackfillCmd) Run(ctx context.Context, a *app) error {
	now := time.Now()
	from, err := parseMoment("from", c.From, now)
	if err != nil {
		return err
	}
	to, err := parseMoment("to", c.To, now)
	if err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	// What is meant by now, and by so long ago, the clock of Redis says: this machine's may be ahead of it.
	there, err := cl.Queue().Now(ctx)
	if err != nil {
		return err
	}
	if from, err = parseMoment("from", c.From, there); err != nil {
		return err
	}
	if to, err = parseMoment("to", c.To, there); err != nil {
		return err
	}
	if to.IsZero() {
		to = there
	}
	p := a.progress()
	of := 0
	added, err := cl.Schedules().Backfill(ctx, c.Name, from, to, func(done, all int) {
		of = all
		p.say("%d of %d slots", done, all)
	})
	p.clear()
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	if a.JSON {
		return a.printJSON(struct {
			Name  string `json:"name"`
			Slots int    `json:"slots"`
			Added int    `json:"added"`
		}{c.Name, of, added})
	}
	a.printf("added %d of %d slots, %d already being backfilled", added, of, of-added)
	return nil
}
