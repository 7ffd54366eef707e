package schedule

// Missed says what becomes of slots that went by while nobody was there to run them.
type Missed string

// What to do about missed slots.
const (
	MissedOnce Missed = "once" // the latest missed slot runs now, then the grid goes on; the default
	MissedAll  Missed = "all"  // each missed slot runs, oldest first, as far back as [Rule.CatchUp]
	MissedSkip Missed = "skip" // none runs; the next is the next on the grid
)

// Overlap says what happens when a slot comes due while the run before it is still going.
// It has nothing to do with clocks going back: that is [OverlapPolicy].
type Overlap string

// What to do about overlapping runs.
const (
	OverlapAllow   Overlap = "allow"   // both run; the default
	OverlapSkip    Overlap = "skip"    // the new one is dropped
	OverlapQueue   Overlap = "queue"   // one waits; more are dropped
	OverlapReplace Overlap = "replace" // the running one is cancelled
)

// GapPolicy says what becomes of a wall-clock time that does not exist because
// clocks went forward over it.
type GapPolicy string

// What to do about times in a gap.
const (
	DSTGapSkip  GapPolicy = "skip"  // no slot
	DSTGapAfter GapPolicy = "after" // one slot at the first instant after the gap, however many times fell in it
)

// OverlapPolicy says what becomes of a wall-clock time that happens twice
// because clocks went back over it.
type OverlapPolicy string

// What to do about times that happen twice.
const (
	DSTOverlapFirst  OverlapPolicy = "first"  // the earlier of the two
	DSTOverlapSecond OverlapPolicy = "second" // the later of the two
	DSTOverlapBoth   OverlapPolicy = "both"   // a slot at each
)

// DST says how a cron expression meets a change of its zone's clock.
//
// A zero field is automatic. An expression that allows every hour (its hour
// field is *, */1 or 0-23) is meant as a cadence and follows elapsed time: times
// in a gap have no slot, times that happen twice have both, so a job that runs
// every five minutes neither bunches up nor falls silent for an hour. Any other
// expression names a time of day and has one slot for it: after the gap, or the
// first of two.
type DST struct {
	Gap     GapPolicy     `json:"gap,omitempty"`
	Overlap OverlapPolicy `json:"overlap,omitempty"`
}

// resolve replaces the automatic choices by what they mean for c.
func (d DST) resolve(c *calendar) DST {
	cadence := c.hour == allHours
	if d.Gap == "" {
		d.Gap = DSTGapAfter
		if cadence {
			d.Gap = DSTGapSkip
		}
	}
	if d.Overlap == "" {
		d.Overlap = DSTOverlapFirst
		if cadence {
			d.Overlap = DSTOverlapBoth
		}
	}
	return d
}

// oneOf reports whether v is empty or among allowed.
func oneOf[S ~string](field string, v S, allowed ...S) error {
	if v == "" {
		return nil
	}
	hint := "use "
	for i, a := range allowed {
		if v == a {
			return nil
		}
		switch {
		case i == 0:
		case i == len(allowed)-1:
			hint += " or "
		default:
			hint += ", "
		}
		hint += string(a)
	}
	return invalid(field, string(v), "unknown policy", hint)
}
