package api

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type previewIn struct {
	Cron       string `query:"cron" doc:"Cron expression of five fields, or six with seconds first."`
	Every      string `query:"every" doc:"Interval: 250ms, 1h30m, 2d."`
	Timezone   string `query:"timezone" doc:"IANA time zone of the cron expression. Default UTC."`
	From       moment `query:"from" doc:"Slots from this time on, inclusive. Default now. With every, this time is slot zero."`
	Until      moment `query:"until" doc:"No slot after this time."`
	Start      string `query:"start" doc:"Slot zero: aligned, or a time."`
	Count      number `query:"count" doc:"How many slots. Default 10."`
	DSTGap     string `query:"dst_gap" enum:"skip,after" doc:"What happens to a slot in the hour that daylight saving skips."`
	DSTOverlap string `query:"dst_overlap" enum:"first,second,both" doc:"Which of the two slots runs in the hour that comes twice."`
	Jitter     string `query:"jitter" doc:"Longest delay of a slot's due time."`
	Name       string `query:"name" doc:"Name that the jitter is computed for. Default preview."`
}

func (s *Server) preview(ctx context.Context, in *previewIn) (*reply[admin.Preview], error) {
	count, err := in.Count.within("count", 10, mostListed)
	if err != nil {
		return nil, err
	}
	now, err := s.admin.Activity.Now(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.rule(ctx, in)
	if err != nil {
		return nil, err
	}
	from, err := s.at(ctx, "from", in.From)
	if err != nil {
		return nil, err
	}
	if from.IsZero() {
		from = now
	}
	if in.Name == "" {
		in.Name = "preview"
	}
	grid, err := r.Grid(r.FirstAnchor(from))
	if err != nil {
		return nil, err
	}
	return &reply[admin.Preview]{admin.PreviewOf(r, in.Name, grid, from.Add(-time.Millisecond), now, count)}, nil
}

// rule makes the rule that the parameters describe.
func (s *Server) rule(ctx context.Context, in *previewIn) (schedule.Rule, error) {
	r := schedule.Rule{
		Cron: in.Cron, Timezone: in.Timezone, Start: in.Start,
		DST: schedule.DST{Gap: schedule.GapPolicy(in.DSTGap), Overlap: schedule.OverlapPolicy(in.DSTOverlap)},
	}
	for _, d := range []struct {
		name, value string
		into        *time.Duration
	}{{"every", in.Every, &r.Every}, {"jitter", in.Jitter, &r.Jitter}} {
		if d.value == "" {
			continue
		}
		v, err := schedule.ParseDuration(d.value)
		if err != nil {
			return r, &task.FieldError{Field: d.name, Value: d.value, Reason: "not a duration", Hint: "for example 250ms, 1h30m or 2d"}
		}
		*d.into = v
	}
	var err error
	if r.Until, err = s.at(ctx, "until", in.Until); err != nil {
		return r, err
	}
	return r, r.Validate()
}
