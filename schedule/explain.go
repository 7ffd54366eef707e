package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Explain says in one line what a clock change did to the slot: the slot stands for times that did not exist, its time
// happens twice, or a time before it was left out. It returns "" for a slot that no clock change affected, for a time that
// is not a slot, and for every rules, which do not depend on a clock.
func (r Rule) Explain(slot time.Time) string {
	c, err := r.compile()
	ms := floorMilli(slot)
	if err != nil || r.Cron == "" || ms < 0 || ms != ceilMilli(slot) || ms%1000 != 0 {
		return ""
	}
	g, t := cronGrid{c.cal, c.zone, c.dst}, ms/1000
	if g.next(t, t) != t {
		return ""
	}
	s := g.zone.at(t)
	wall := t + s.offset
	switch {
	case t == s.start && g.gapSlot(s):
		return g.describeGap(s, "does not", "do not", "go") +
			fmt.Sprintf("; one run at %s replaces %s", clock(wall), g.skipped(s, "it", "them"))
	case s.before > s.offset && wall < s.start+s.before:
		return describeTwice(wall, s.start+s.before, s.start+s.offset) + g.which("second")
	case s.to < s.offset && wall >= s.end+s.to:
		return describeTwice(wall, s.end+s.offset, s.end+s.to) + g.which("first")
	case g.dst.Gap == DSTGapAfter:
		return ""
	}
	for before := g.prev(t-1, 0); s.start > max(before, 0); s = g.zone.at(s.start - 1) {
		if g.skips(s) {
			return g.describeGap(s, "did not", "did not", "went") + "; no slot for " + g.skipped(s, "it", "them")
		}
	}
	return ""
}

// skipped returns one or many, by how many matches the gap at the start of s contains.
func (g *cronGrid) skipped(s span, one, many string) string {
	if g.cal.count(s.start+s.before, s.start+s.offset) == 1 {
		return one
	}
	return many
}

func (g *cronGrid) describeGap(s span, doesNot, doNot, goes string) string {
	lo, hi := s.start+s.before, s.start+s.offset
	first := g.cal.next(lo)
	what := clock(first) + " " + doesNot
	if n := g.cal.count(lo, hi); n > 1 {
		what = fmt.Sprintf("%d times from %s to %s %s", n, clock(first), clock(g.cal.prev(hi-1)), doNot)
	}
	from, to := clocks(lo, hi)
	return fmt.Sprintf("%s exist on %s: clocks %s forward from %s to %s", what, date(first), goes, from, to)
}

func describeTwice(wall, from, to int64) string {
	a, b := clocks(from, to)
	return fmt.Sprintf("%s happens twice on %s: clocks go back from %s to %s; ", clock(wall), date(wall), a, b)
}

func (g *cronGrid) which(this string) string {
	if g.dst.Overlap == DSTOverlapBoth {
		return "both are used, this is the " + this
	}
	return "the " + this + " is used"
}

// clocks formats two wall-clock seconds, with their dates if those differ.
func clocks(a, b int64) (string, string) {
	if floorDiv(a, daySeconds) == floorDiv(b, daySeconds) {
		return clock(a), clock(b)
	}
	return date(a) + " " + clock(a), date(b) + " " + clock(b)
}

func clock(wall int64) string {
	if wall%60 != 0 {
		return time.Unix(wall, 0).UTC().Format("15:04:05")
	}
	return time.Unix(wall, 0).UTC().Format("15:04")
}

func date(wall int64) string { return time.Unix(wall, 0).UTC().Format(time.DateOnly) }

// Describe returns the rule in one line for a person: when it runs, then each setting that is not the default. Equal rules
// have equal descriptions; an invalid rule has one too.
func Describe(r Rule) string {
	var b strings.Builder
	switch zone := r.Timezone; {
	case r.Cron != "":
		if zone == "" {
			zone = "UTC"
		}
		fmt.Fprintf(&b, "cron %q %s", r.Cron, zone)
	default:
		b.WriteString("every " + FormatDuration(r.Every))
	}
	add := func(set bool, name, value string) {
		if set {
			b.WriteString(", " + name + " " + value)
		}
	}
	r = r.WithDefaults()
	add(r.DST.Gap != "", "dst gap", string(r.DST.Gap))
	add(r.DST.Overlap != "", "dst overlap", string(r.DST.Overlap))
	add(r.Start != "", "start", r.Start)
	add(!r.Until.IsZero(), "until", r.Until.UTC().Format(time.RFC3339Nano))
	add(r.MaxRuns != 0, "max runs", formatInt(r.MaxRuns))
	add(r.Jitter != 0, "jitter", FormatDuration(r.Jitter))
	add(r.Missed != MissedOnce, "missed", string(r.Missed))
	add(r.CatchUp != DefaultCatchUp, "catch up", FormatDuration(r.CatchUp))
	add(r.Overlap != OverlapAllow, "overlap", string(r.Overlap))
	return b.String()
}
