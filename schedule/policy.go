package schedule

// Missed says what happens to slots that came while no instance could run them.
type Missed string

// The policies for missed slots.
const (
	MissedOnce Missed = "once" // the latest missed slot runs now, then the grid goes on; the default
	MissedAll  Missed = "all"  // each missed slot runs, oldest first, as far back as [Rule.CatchUp]
	MissedSkip Missed = "skip" // none runs; the grid goes on with its next slot
)

// Overlap says what happens when a slot comes due while the run before it is still going. It has nothing to do with clocks
// that go back: see [OverlapPolicy].
type Overlap string

// The policies for overlapping runs.
const (
	OverlapAllow   Overlap = "allow"   // both run; the default
	OverlapSkip    Overlap = "skip"    // the new one is dropped
	OverlapQueue   Overlap = "queue"   // one waits; more are dropped
	OverlapReplace Overlap = "replace" // the running one is cancelled
)

// GapPolicy says what happens to a wall-clock time that does not exist because the clock went forward over it.
type GapPolicy string

// The policies for times in a gap.
const (
	DSTGapSkip  GapPolicy = "skip"  // no slot
	DSTGapAfter GapPolicy = "after" // one slot at the first instant after the gap, however many times fell into it
)

// OverlapPolicy says what happens to a wall-clock time that happens twice because the clock went back over it.
type OverlapPolicy string

// The policies for times that happen twice.
const (
	DSTOverlapFirst  OverlapPolicy = "first"  // the earlier of the two
	DSTOverlapSecond OverlapPolicy = "second" // the later of the two
	DSTOverlapBoth   OverlapPolicy = "both"   // a slot at each
)

// DST says what a cron expression does when its zone's clock changes.
//
// A zero field is automatic. An expression that allows every hour (its hour field is *, */1 or 0-23) is meant as an
// interval and follows elapsed time: times in a gap have no slot, and times that happen twice have both. So a job that runs
// every five minutes neither bunches up nor pauses for an hour. Any other expression names a time of day and has one slot
// for it: after the gap, or at the first of the two.
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

// oneOf refuses v if it is neither empty nor among allowed.
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
