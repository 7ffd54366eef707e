package audit

import "fmt"

// Verdict says what became of a slot. Each slot has exactly one.
type Verdict uint8

// The verdicts. The last four say that a promise broke.
const (
	// OnTime: it ran to the end, and was claimed within the tolerance after its due time.
	OnTime Verdict = iota
	// Late: it ran to the end, and was claimed later than that.
	Late
	// Missed: no instance was there, and its schedule's policy is not to run it later.
	Missed
	// Skipped: the run before it was still going.
	Skipped
	// Paused: its schedule was paused.
	Paused
	// Changed: its schedule was changed, made or deleted around that time.
	Changed
	// Cancelled: a user cancelled it, or a newer slot took its place.
	Cancelled
	// Failed: it ran, and failed for good.
	Failed
	// Pending: it is due, or waits for a retry.
	Pending
	// Running: an instance runs it now.
	Running
	// Unknown: the history does not reach back to it, or a newer release wrote a word that this one does not know, or it is
	// noted as missed but was due in a time whose writes Redis lost, so that it may have run.
	Unknown
	// Lost: nothing accounts for it.
	Lost
	// Duplicated: it ran again although nothing had gone wrong with the run before.
	Duplicated
	// Early: it was claimed before it was due.
	Early
	// OffGrid: a task ran for a time that is not a slot. It is not one of the expected slots.
	OffGrid

	verdicts
)

var verdictNames = [verdicts]string{
	"on_time", "late", "missed", "skipped", "paused", "changed", "cancelled", "failed", "pending", "running", "unknown",
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
