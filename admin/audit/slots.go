package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

// Span says which slots [Auditor.Slots] judges.
type Span struct {
	// From and To bound the slots; both are inclusive. Zero: an hour before To, and now. A To that has not come counts as now.
	From, To time.Time
	// Schedules are the schedules to judge. None: all, including those that were deleted lately.
	Schedules []string
	// Step sums up the slots of a schedule if there is less time than this between them, on average. Zero: each slot is by itself.
	Step time.Duration
}

// Judgement is what became of the slots of a span.
type Judgement struct {
	Span         // as it was judged
	Lines []Line // a line for each schedule, by name
	// Unknown are the schedules that were asked for, do not exist now, and did not since From.
	Unknown []string
}

// Line is every slot that a schedule should have had in a span, each by itself or summed up.
type Line struct {
	Schedule string
	Slots    []Judged // ascending
	Sums     []Sum    // ascending; then there are no Slots
}

// Judged is one slot with its verdict.
type Judged struct {
	Slot    time.Time
	Due     time.Time // the slot with its jitter
	Verdict Verdict
	Why     string // why it did not run, such as "outage"
	// Ran says that an instance took it. Then Lag is the time from when it was due until it was first taken, and Last is its
	// last run that has ended.
	Ran  bool
	Lag  time.Duration
	Last archive.Note
	// Began is when the run began that goes on.
	Began time.Time
}

// MostSlots is how many slots [Auditor.Slots] judges at most.
const MostSlots = 10_000

// The bounds of a span with steps.
const (
	// MostSteps is how many steps a span has at most.
	MostSteps = 2000
	// MostSummed is how many slots [Slots] judges at most where it sums them up: those of one schedule take 64 MB.
	MostSummed = 4_000_000
	// mostInAll is how many slots it judges of all schedules.
	mostInAll = 20_000_000
	// summedAtOnce is about how many it judges in one pass over the history.
	summedAtOnce = 1_000_000
)

// longest is the longest span.
const longest = 366 * 24 * time.Hour

// Slots judges each slot of a span as [Auditor.Run] does. It returns a [*task.FieldError] for a span that has more than [MostSlots]
// slots, or with a step more than [MostSummed] of one schedule, and [task.ErrNotFound] if none of the schedules that were asked for is
// known. For schedules that this release cannot read it returns a joined error, besides the lines of the others.
func (r *Auditor) Slots(ctx context.Context, o Span) (Judgement, error) {
	a := &auditor{
		Auditor: r, opts: Options{Since: time.Hour}, from: o.From, to: o.To,
	}
	if len(o.Schedules) > 0 {
		a.only = setOf(o.Schedules)
	}
	if err := a.bound(ctx); err != nil {
		return Judgement{Span: o}, err
	}
	o.From, o.To = a.from, a.to
	if err := o.checkStep(); err != nil {
		return Judgement{Span: o}, err
	}
	if err := a.list(ctx); err != nil {
		return Judgement{Span: o}, err
	}
	if err := a.read(ctx); err != nil {
		return Judgement{Span: o}, err
	}
	lines, err := a.lines(ctx, o)
	if err != nil {
		return Judgement{Span: o}, err
	}
	return Judgement{o, lines, a.unknown}, errors.Join(a.unread...)
}

// lines judges the schedules that were read, as many in one pass over the history as there is memory for.
func (a *auditor) lines(ctx context.Context, o Span) ([]Line, error) {
	most, all, pass := MostSlots, MostSlots, math.MaxInt
	if o.Step > 0 {
		most, all, pass = MostSummed, mostInAll, summedAtOnce
	}
	room := all
	lines, group, slots := []Line{}, []*ledger{}, 0
	names := slices.Sorted(maps.Keys(a.known))
	for i, name := range names {
		if err := ctx.Err(); err != nil { // millions of slots take seconds
			return nil, fmt.Errorf("audit: %w", context.Cause(ctx))
		}
		in := *a.known[name]
		in.MaxSlots = min(most, room) + 1
		l := open(in)
		if len(l.slots) > min(most, room) || l.in.From.After(in.From) { // open left out the oldest
			if room < most {
				return nil, tooLong(a.from, fmt.Sprintf("more than %d slots come after it", all))
			}
			return nil, tooLong(a.from, fmt.Sprintf("more than %d slots of %q come after it", most, name))
		}
		if !o.sums(l) {
			l.runs = map[int64]history.Note{}
		}
		group, slots, room = append(group, l), slots+len(l.slots), room-len(l.slots)
		if slots < pass && i+1 < len(names) {
			continue
		}
		if err := a.judge(ctx, group); err != nil {
			return nil, err
		}
		for _, l := range group {
			lines = append(lines, l.line(&o))
		}
		group, slots = nil, 0
	}
	return lines, nil
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
func (l *ledger) line(o *Span) Line {
	if o.sums(l) {
		return Line{Schedule: l.in.Schedule, Sums: l.sums(o.Step)}
	}
	out := Line{Schedule: l.in.Schedule, Slots: make([]Judged, len(l.slots))}
	for i := range l.slots {
		s := &l.slots[i]
		j := Judged{Slot: time.UnixMilli(s.ms).UTC(), Due: l.due(s.ms).UTC(), Verdict: l.verdict(s), Last: l.runs[s.ms]}
		if j.Verdict == Running {
			j.Began = l.began[s.ms].UTC()
		}
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
