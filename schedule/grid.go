package schedule

import (
	"iter"
	"time"
	"unique"
)

// maxMilli is the last instant of 9999-12-30, in unix milliseconds. In no zone is it the year 10000 by then, which JSON cannot write.
const maxMilli = 253402214399999

// Grid is a rule with its anchor: the set of the rule's slots. It is a small value that is safe to copy and to use from
// many goroutines; grids with the same expression and zone share their compiled form. The zero Grid has no slots.
//
// It returns all times in UTC. [Rule.Location] returns the zone in which to show them.
type Grid struct {
	first, last int64 // unix ms; no slot lies outside
	every       int64 // ms; 0 for cron
	cal         unique.Handle[calendar]
	zone        *zone // nil unless cron
	dst         DST
}

// Grid validates the rule and binds it to anchor, which it rounds down to the millisecond. For every, anchor is slot zero.
// For cron, no slot lies before anchor, and the zero Time sets no such bound.
//
// Pass the anchor that [Rule.FirstAnchor] returned when the rule was first applied. The zero Time stands for the anchor of
// a rule that names it itself: a start time, or "aligned", which is then 1970-01-01T00:00:00Z.
func (r Rule) Grid(anchor time.Time) (Grid, error) {
	c, err := r.compile()
	if err != nil {
		return Grid{}, err
	}
	g := Grid{first: c.start, last: c.until, every: r.Every.Milliseconds(), zone: c.zone, dst: c.dst}
	if r.Cron != "" {
		g.cal = unique.Make(c.cal)
	}
	switch {
	case !anchor.IsZero():
		if err := checkInstant("anchor", anchor.Truncate(time.Millisecond)); err != nil {
			return Grid{}, err
		}
		g.first = anchor.UnixMilli()
	case r.Cron == "" && !c.hasStart:
		return Grid{}, invalid("anchor", "", "missing: the rule starts when it is first applied", "pass that instant")
	}
	return g, nil
}

// Next returns the first slot strictly after t. It returns the zero Time if there is none: the rule's Until, or
// 9999-12-30, has passed.
func (g Grid) Next(t time.Time) time.Time { return asTime(g.next(floorMilli(t))) }

// Prev returns the last slot strictly before t. It returns the zero Time if there is none: t is not after the anchor, or
// not after the start of 1970.
func (g Grid) Prev(t time.Time) time.Time { return asTime(g.prev(ceilMilli(t))) }

// Gap returns the longest of the last two times between slots up to a moment's next slot, which is the cadence there: at the end of a night
// without slots, the first slot of the morning has not run yet. It is zero if no slot follows.
func (g Grid) Gap(t time.Time) time.Duration {
	last, next := g.Prev(t.Add(time.Nanosecond)), g.Next(t)
	if next.IsZero() {
		return 0
	}
	if last.IsZero() {
		if last, next = next, g.Next(next); next.IsZero() {
			return 0
		}
	}
	gap := next.Sub(last)
	if before := g.Prev(last); !before.IsZero() {
		gap = max(gap, last.Sub(before))
	}
	return gap
}

// Between returns the slots in (from, to], in order. Each costs one call of Next, so a long span does no harm: stop when
// you have enough.
func (g Grid) Between(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		end := floorMilli(to)
		for ms := g.next(floorMilli(from)); ms <= end; ms = g.next(ms) {
			if !yield(asTime(ms)) {
				return
			}
		}
	}
}

// Count returns how many slots lie in (from, to]. For every, it is one division. For cron, its time depends on the number
// of months in the span, not on the number of slots.
func (g Grid) Count(from, to time.Time) int64 {
	lo, hi := max(floorMilli(from), g.first-1), min(floorMilli(to), g.last)
	switch {
	case hi <= lo:
		return 0
	case g.every > 0:
		return floorDiv(hi-g.first, g.every) - floorDiv(lo-g.first, g.every)
	case g.zone == nil:
		return 0
	}
	c := g.cron()
	return c.count(floorDiv(lo, 1000)+1, floorDiv(hi, 1000))
}

// Index returns k for slot k of an every rule. It returns false if t is not a slot, and always for cron, whose slots have
// no number.
func (g Grid) Index(t time.Time) (int64, bool) {
	ms := floorMilli(t)
	if g.every == 0 || ms != ceilMilli(t) || ms < g.first || ms > g.last || (ms-g.first)%g.every != 0 {
		return 0, false
	}
	return (ms - g.first) / g.every, true
}

func (g *Grid) cron() cronGrid {
	return cronGrid{cal: g.cal.Value(), zone: g.zone, dst: g.dst}
}

// next and prev are Next and Prev in unix milliseconds.
func (g *Grid) next(after int64) int64 {
	after = max(after, g.first-1)
	slot := never
	switch {
	case g.every > 0:
		slot = g.first + (floorDiv(after-g.first, g.every)+1)*g.every
	case g.zone != nil:
		c := g.cron()
		if s := c.next(floorDiv(after, 1000)+1, floorDiv(g.last, 1000)); s != never {
			slot = s * 1000
		}
	}
	if slot > g.last {
		return never
	}
	return slot
}

func (g *Grid) prev(before int64) int64 {
	before = min(before, g.last+1)
	slot := always
	switch {
	case g.every > 0:
		slot = g.first + floorDiv(before-1-g.first, g.every)*g.every
	case g.zone != nil:
		c := g.cron()
		if s := c.prev(floorDiv(before-1, 1000), -floorDiv(-g.first, 1000)); s != always {
			slot = s * 1000
		}
	}
	if slot < g.first {
		return always
	}
	return slot
}

func asTime(ms int64) time.Time {
	if ms == never || ms == always {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// floorMilli and ceilMilli return t in unix milliseconds, rounded down and up. A time that no slot can have becomes one
// just outside those from year 1 to the last, so that later arithmetic does not overflow.
func floorMilli(t time.Time) int64 {
	const year1 = -62135596800
	switch sec := t.Unix(); {
	case sec < year1:
		return year1 * 1000
	case sec > maxMilli/1000:
		return maxMilli + 1
	}
	return t.UnixMilli()
}

func ceilMilli(t time.Time) int64 {
	ms := floorMilli(t)
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
