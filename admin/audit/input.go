package audit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// period is a time in which a schedule had one rule.
type period struct {
	Rule schedule.Rule
	Grid schedule.Grid
	// Until is the moment of the change that ended the period: slots up to it belong to the period. Zero if the rule still
	// holds.
	Until time.Time
	// Looked is when the caller that made that change last read the schedule. A slot between Looked and Until was neither
	// pushed nor noted.
	Looked time.Time
	// Forgotten: Redis came back empty, and knows nothing of the period, and so not when its last slots were.
	Forgotten bool
}

// newPeriod binds a rule to its anchor.
func newPeriod(r schedule.Rule, anchor time.Time) (period, error) {
	grid, err := r.Grid(anchor)
	if err != nil {
		return period{}, fmt.Errorf("audit: %w", err)
	}
	return period{Rule: r, Grid: grid}, nil
}

// input is what is known about one schedule.
type input struct {
	// Schedule is its name.
	Schedule string
	// Periods are the rules it had, oldest first. A period begins where the one before it ended. If the last has an Until,
	// the schedule was deleted then.
	Periods []period
	// From and To bound the slots that are judged; both are inclusive.
	From, To time.Time
	// Now is when it is judged. Default To.
	Now time.Time
	// Known is where the history begins: a slot before it without a note is unknown. Zero: the history is complete.
	Known time.Time
	// Gaps are the times of which entries of the history are lost: the note of a slot may be among them.
	Gaps []past.Gap
	// Settled is the schedule's last run: later slots have not been dealt with, which is no fault while no instance leads.
	Settled time.Time
	// Behind are the missed slots up to Settled that are still to be pushed.
	Behind []producer.Span
	// Over: the schedule has had all its runs. Slots after Settled are not expected.
	Over bool
	// Paused: the schedule is paused now, since Stopped (zero: nobody knows), by StoppedBy, for a Reason; both may be "".
	Paused            bool
	Stopped           time.Time
	StoppedBy, Reason string
	// Forgot is when Redis had forgotten which rules the schedule had before; zero: it has not. A run before that may have had another
	// rule than is known.
	Forgot time.Time
	// Losses are the times whose writes Redis lost.
	Losses []Loss
	// Void are slots that ran to their end under a claim that Redis no longer knew.
	Void []time.Time
	// Resumed are the moments at which a pause ended.
	Resumed []time.Time

	// Tolerance is how long after its due time a slot may be claimed and still count as on time. Default 1s.
	Tolerance time.Duration
	// Grace is how long before Now a slot without a note still counts as pending. Default 2s.
	Grace time.Duration
	// MaxSlots is how many slots are judged at most: the newest. Default 10,000,000, which take 16 bytes each.
	MaxSlots int
}

func (in input) withDefaults() input {
	in.Tolerance = cmp.Or(in.Tolerance, time.Second)
	if in.Now.IsZero() {
		in.Now = in.To
	}
	in.Grace = cmp.Or(in.Grace, 2*time.Second)
	in.MaxSlots = cmp.Or(in.MaxSlots, 10_000_000)
	return in
}
