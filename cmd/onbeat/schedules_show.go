package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
)

type schedulesShowCmd struct {
	Name string `arg:"" predict:"schedule" help:"Schedule."`
}

// shownSlots is how many coming slots are shown.
const shownSlots = 5

// Run shows a schedule, also one that was retired and may come back.
func (c *schedulesShowCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	s, err := cl.Schedules().Get(ctx, c.Name)
	if errors.Is(err, queue.ErrNotFound) {
		if was, err2 := cl.Schedules().Retired(ctx, c.Name); err2 == nil {
			s, err = was, nil
		}
	}
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	now, err := cl.Queue().Now(ctx)
	if err != nil {
		return err
	}
	slots := upcoming(&s, now)
	latest, err := cl.Schedules().Latest(ctx, []string{c.Name})
	if err != nil {
		return err
	}
	runs, _, err := cl.Schedules().Runs(ctx, c.Name, "", shownSlots)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printScheduleJSON(&s, slots, latest[c.Name], runs)
	}
	a.printSchedule(&s, slots, now)
	if len(runs) > 0 {
		a.printf("\n%s", a.style.dim("last runs"))
		a.runsTable(runs, now).print(a.out)
	}
	return nil
}

// upcoming are the next slots. A paused schedule has none.
func upcoming(s *producer.Status, now time.Time) []slotLine {
	grid, err := s.Grid()
	if err != nil || s.Next.IsZero() {
		return []slotLine{}
	}
	left := int64(shownSlots)
	if s.Schedule.MaxRuns > 0 {
		left = min(left, s.Schedule.MaxRuns-s.Runs)
	}
	return slotLines(s.Schedule.Rule, s.Schedule.Name, grid, s.Next.Add(-time.Millisecond), now, int(max(left, 1)))
}

// printScheduleJSON adds the slots to the status's own JSON.
func (a *app) printScheduleJSON(s *producer.Status, slots []slotLine, latest *producer.Latest, runs []producer.Run) error {
	b, err := withMore(s, struct {
		Upcoming []slotLine     `json:"upcoming"`
		Latest   *latestLine    `json:"latest,omitempty"`
		Runs     []producer.Run `json:"recent_runs"`
	}{slots, latestOf(latest), append([]producer.Run{}, runs...)})
	if err != nil {
		return err
	}
	return a.printJSON(b)
}

// withMore is an object in JSON with the fields of a second one behind its own.
func withMore(v, more any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m, err := json.Marshal(more)
	if err != nil || len(m) <= len("{}") {
		return b, err
	}
	return append(append(b[:len(b)-1], ','), m[1:]...), nil
}

func (a *app) printSchedule(s *producer.Status, slots []slotLine, now time.Time) {
	f := a.fields()
	loc := s.Schedule.Location()
	f.add("name", a.style.bold(s.Schedule.Name))
	f.add("when", schedule.Describe(s.Schedule.Rule))
	f.add("state", scheduleState(s))
	if s.Retired != nil {
		f.add("retired", both(s.Retired.At.In(loc), now))
	}
	f.add("task", s.Schedule.Task)
	f.add("payload", string(plainJSON(s.Schedule.Payload)))
	f.add("queue", s.Schedule.Queue)
	if s.Schedule.Priority != 0 {
		f.add("priority", s.Schedule.Priority.String())
	}
	if s.Schedule.Timeout > 0 {
		f.add("timeout", schedule.FormatDuration(s.Schedule.Timeout))
	}
	if s.Schedule.MaxAttempts > 0 {
		f.add("max attempts", fmt.Sprint(s.Schedule.MaxAttempts))
	}
	if b := s.Schedule.Backoff; b.Base > 0 || b.Cap > 0 {
		base, limit := b.Bounds()
		f.add("backoff", schedule.FormatDuration(base)+" up to "+schedule.FormatDuration(limit))
	}
	f.add("anchor", at(s.Anchor.In(loc)))
	f.add("last slot", both(s.Last.In(loc), now))
	f.add("pushed", fmt.Sprint(s.Runs))
	if s.Behind > 0 {
		f.add("behind", fmt.Sprintf("%d missed slots are still to be run", s.Behind))
	}
	f.print(a.out)
	if len(slots) > 0 {
		a.printf("\n%s", a.style.dim("next slots"))
		t := a.slotTable(slots, now)
		t.print(a.out)
	}
}
