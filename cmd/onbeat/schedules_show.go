package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type schedulesShowCmd struct {
	Name   string `arg:"" predict:"schedule" help:"Schedule."`
	Reveal bool   `help:"Show the secret values of the payload too, and the URLs of the heartbeat."`
}

// Run shows a schedule, also one that was retired and may come back.
func (c *schedulesShowCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	s, err := cl.Schedules.Get(ctx, c.Name)
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	if !c.Reveal {
		s = s.Masked()
	}
	if a.JSON {
		return a.printJSON(s)
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	a.printSchedule(&s, now)
	if len(s.RecentRuns) > 0 {
		a.printf("\n%s", a.style.dim("last runs"))
		a.runsTable(s.RecentRuns, now).print(a.out)
	}
	return nil
}

func (a *app) printSchedule(s *admin.ScheduleDetail, now time.Time) {
	f := a.fields()
	loc := s.Rule.Location()
	f.add("name", a.style.bold(s.Name))
	f.add("when", schedule.Describe(s.Rule))
	f.add("state", scheduleState(&s.Schedule))
	if s.Health != "" && s.Deleted == nil {
		f.add("health", a.health(&s.Schedule, now).text)
		f.add("why", s.Why)
	}
	if s.Revision != 0 {
		f.add("revision", fmt.Sprint(s.Revision))
	}
	if s.Retired != nil {
		f.add("retired", both(s.Retired.At.In(loc), now))
	}
	f.add("task", s.Task)
	f.add("payload", string(plainJSON(s.Payload))+s.Encrypted)
	if s.Heartbeat != nil {
		b, _ := json.Marshal(s.Heartbeat) // texts always encode
		f.add("heartbeat", string(plainJSON(b)))
	}
	f.add("queue", s.Queue)
	if s.Priority != task.Normal {
		f.add("priority", s.Priority.String())
	}
	if s.Timeout > 0 {
		f.add("timeout", schedule.FormatDuration(s.Timeout))
	}
	if s.MaxAttempts > 0 {
		f.add("max attempts", fmt.Sprint(s.MaxAttempts))
	}
	if s.Backoff != (task.Backoff{}) {
		base, limit := s.Backoff.Bounds()
		f.add("backoff", schedule.FormatDuration(base)+" up to "+schedule.FormatDuration(limit))
	}
	f.add("anchor", at(s.Anchor.In(loc)))
	f.add("last slot", both(s.Last.In(loc), now))
	f.add("pushed", fmt.Sprint(s.Runs))
	if s.Behind > 0 {
		f.add("behind", fmt.Sprintf("%d missed slots have still to run", s.Behind))
	}
	f.print(a.out)
	if len(s.Upcoming) > 0 {
		a.printf("\n%s", a.style.dim("next slots"))
		t := a.slotTable(s.Upcoming)
		t.print(a.out)
	}
}
