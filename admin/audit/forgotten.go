package audit

import (
	"context"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// forgotten is the rule that a schedule had before Redis came back empty. The archive has the rule, and no anchor: a slot that ran
// tells where the grid lies.
type forgotten struct {
	name  string
	rule  *schedule.Rule // nil: the archive does not have it either
	since time.Time      // it held since then, or since later
	until time.Time      // Redis had forgotten it by then
	ran   time.Time      // the last slot that ran; zero: none is known
}

// recall asks the archive which rules schedules had that Redis made anew in the time to judge.
func (a *auditor) recall(ctx context.Context, now map[string]*producer.Status) error {
	a.forgot = map[string]*forgotten{}
	if all, err := a.past.Reaches(ctx, a.from); all || err != nil {
		return err
	}
	for name, s := range now {
		if !s.Anchor.After(a.known[name].From) {
			continue // Redis knows its grid
		}
		was, until, err := a.s.Forgotten(ctx, name)
		if err != nil {
			return err
		}
		if until.IsZero() {
			continue
		}
		f := &forgotten{name: name, until: until}
		if was != nil && was.Schedule != nil {
			f.rule, f.since = &was.Schedule.Rule, was.At
		}
		a.forgot[name] = f
	}
	return nil
}

// note takes in what became of a slot, the oldest first.
func (f *forgotten) note(n *history.Note) {
	if !n.Slot.IsZero() && !n.Claimed.IsZero() && n.At.Before(f.until) {
		f.ran = n.Slot
	}
}

// complete adds the period of the rule. Its slots without a note are unknown: nobody knows when Redis was lost.
func (f *forgotten) complete(in *input) {
	in.Forgot = f.until
	if f.rule == nil || f.ran.IsZero() && f.rule.Every > 0 {
		return
	}
	anchor := later(f.since, in.From)
	if every := f.rule.Every; every > 0 {
		anchor = f.ran.Add(-max(f.ran.Sub(anchor)/every, 0) * every)
	}
	p, err := newPeriod(*f.rule, anchor)
	if err != nil {
		return // a newer release wrote it: the runs of that time are left out
	}
	p.Until, p.Forgotten = f.until, true
	at := slices.IndexFunc(in.Periods, func(x period) bool { return x.Until.IsZero() || x.Until.After(f.until) })
	if at < 0 {
		at = len(in.Periods)
	}
	in.Periods = slices.Insert(in.Periods, at, p)
}
