package audit

import "fmt"

// Verdict is what became of a slot. Each has exactly one.
type Verdict uint8

// The verdicts. The last four say that a promise broke.
const (
	// OnTime: it ran to the end, claimed within the tolerance after it fell due.
	OnTime Verdict = iota
	// Late: it ran to the end, claimed later than that.
	Late
	// Missed: nobody was there, and its schedule's policy is not to run it later.
	Missed
	// Skipped: the run before it was still going.
	Skipped
	// Paused: its schedule was paused.
	Paused
	// Changed: its schedule was changed, made or deleted around it.
	Changed
	// Cancelled: somebody cancelled it, or a newer slot took its place.
	Cancelled
	// Failed: it ran, and failed for good.
	Failed
	// Pending: it is due, running or waits to be tried again.
	Pending
	// Unknown: the history does not reach back to it, a newer release says what this one does not know, or it is noted as
	// missed and was due in a time whose writes Redis lost, in which it may have run.
	Unknown
	// Lost: nobody accounts for it.
	Lost
	// Duplicated: it ran again though nothing had gone wrong with the run before.
	Duplicated
	// Early: it was claimed before it was due.
	Early
	// OffGrid: something ran for a time that is no slot. It is not one of the slots that were expected.
	OffGrid

	verdicts
)

var verdictNames = [verdicts]string{
	"on_time", "late", "missed", "skipped", "paused", "changed", "cancelled", "failed", "pending", "unknown",
	"lost", "duplicated", "early", "off_grid",
}

func (v Verdict) String() string {
	if v < verdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// MarshalText writes the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the name.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdictNames {
		if name == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("verdict %q: unknown", text)
}

// Broken reports whether a promise broke.
func (v Verdict) Broken() bool { return v >= Lost }
