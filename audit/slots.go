package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/past"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// Span says which slots [Slots] judges.
type Span struct {
	// From and To bound the slots; both are inclusive. Zero: an hour before To, and now. A To that has not come counts as now.
	From, To time.Time
	// Schedules are the schedules to judge. None: all, including those that were deleted lately.
	Schedules []string
	// Past is where to read what happened. Default: Redis alone.
	Past *past.Past
}

// Line is every slot that a schedule should have had in a span.
type Line struct {
	Schedule string
	Slots    []Judged // ascending
}

// Judged is one slot with its verdict.
type Judged struct {
	Slot    time.Time
	Verdict Verdict
	Why     string // why it did not run, such as "outage"
	// Ran says that an instance took it. Then Lag is the time from when it was due until it was first taken, and Last is its
	// last run that has ended.
	Ran  bool
	Lag  time.Duration
	Last history.Note
}

// MostSlots is how many slots [Slots] judges at most.
const MostSlots = 10_000

// longest is the longest span.
const longest = 366 * 24 * time.Hour

// Slots judges each slot of a span as [Run] does, and returns a line for each schedule, by name, and the span as it was
// judged. It returns a [*task.FieldError] for a span that has more than [MostSlots] slots, and [queue.ErrNotFound] for a
// schedule that does not exist now and did not since From. For schedules that this release cannot read it returns a joined
// error, besides the lines of the others.
func Slots(ctx context.Context, q *queue.Queue, s *producer.Schedules, o Span) (Span, []Line, error) {
	a := &auditor{
		q: q, past: pastOf(q, o.Past), opts: Options{Since: time.Hour}, names: o.Schedules, from: o.From, to: o.To,
		known: map[string]*input{},
	}
	if err := a.bound(ctx); err != nil {
		return o, nil, err
	}
	o.From, o.To = a.from, a.to
	if err := a.read(ctx, s); err != nil {
		return o, nil, err
	}
	names := slices.Sorted(maps.Keys(a.known))
	group := make([]*ledger, len(names))
	room := MostSlots
	for i, name := range names {
		in := a.known[name]
		in.MaxSlots = room + 1
		group[i] = open(*in)
		group[i].runs = map[int64]history.Note{}
		if room -= len(group[i].slots); room < 0 || group[i].in.From.After(in.From) { // open left out the oldest
			return o, nil, tooLong(a.from, fmt.Sprintf("more than %d slots come after it", MostSlots))
		}
	}
	if err := a.judge(ctx, group); err != nil {
		return o, nil, err
	}
	lines := make([]Line, len(group))
	for i, l := range group {
		lines[i] = l.line()
	}
	return o, lines, errors.Join(a.unread...)
}

// bound completes the span, and refuses one that is none.
func (a *auditor) bound(ctx context.Context) error {
	now, err := a.q.Now(ctx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if a.to.IsZero() || a.to.After(now) {
		a.to = now
	}
	if a.from.IsZero() {
		a.from = a.to.Add(-a.opts.Since)
	}
	switch {
	case a.from.After(a.to):
		return &task.FieldError{
			Field: "from", Value: a.from.Format(time.RFC3339), Reason: "after to, or in the future", Hint: "pass a time that has come",
		}
	case a.to.Sub(a.from) > longest:
		return tooLong(a.from, "more than 366 days before to")
	}
	return nil
}

func tooLong(from time.Time, reason string) error {
	return &task.FieldError{
		Field: "from", Value: from.Format(time.RFC3339), Reason: reason, Hint: "ask for a shorter time, or for fewer schedules",
	}
}

// line returns the slots as they are judged by now.
func (l *ledger) line() Line {
	out := Line{Schedule: l.in.Schedule, Slots: make([]Judged, len(l.slots))}
	for i := range l.slots {
		s := &l.slots[i]
		j := Judged{Slot: time.UnixMilli(s.ms).UTC(), Verdict: l.verdict(s), Last: l.runs[s.ms]}
		if j.Verdict == Missed || j.Verdict == Skipped {
			j.Why = l.whys[s.why]
		}
		if j.Ran = s.flags&ran != 0; j.Ran {
			j.Lag = time.Duration(s.lag) * time.Millisecond
		}
		out.Slots[i] = j
	}
	return out
}
