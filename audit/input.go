package audit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
)

// period is a time in which a schedule had one rule.
type period struct {
	Rule schedule.Rule
	Grid schedule.Grid
	// Until is the moment of the change that ended it: slots up to it are of this period. Zero if the rule still holds.
	Until time.Time
	// Looked is when whoever made that change last looked. A slot between Looked and Until was neither pushed nor noted.
	Looked time.Time
}

// newPeriod nails a rule to its anchor.
func newPeriod(r schedule.Rule, anchor time.Time) (period, error) {
	grid, err := r.Grid(anchor)
	if err != nil {
		return period{}, fmt.Errorf("audit: %w", err)
	}
	return period{Rule: r, Grid: grid}, nil
}

// input is what is known of one schedule.
type input struct {
	// Schedule is its name.
	Schedule string
	// Periods are the rules it had, the oldest first. A period begins where the one before ended. If the last has an
	// Until, the schedule was deleted then.
	Periods []period
	// From and To bound the slots that are judged; both are included.
	From, To time.Time
	// Known is where the history begins: a slot before it that has no note is unknown. Zero: it has everything.
	Known time.Time
	// Settled is the schedule's last run: slots after it have not been dealt with, which is no fault as long as nobody
	// leads.
	Settled time.Time
	// Behind are slots up to Settled that were missed and are still to be pushed.
	Behind []queue.Span
	// Over: the schedule has had all its runs. Slots after Settled are not expected.
	Over bool
	// Paused: the schedule is paused now.
	Paused bool
	// Losses are times of which Redis lost the writes.
	Losses []Loss
	// Vain are slots that ran to their end under a claim that Redis did not know any more.
	Vain []time.Time
	// Resumed are moments at which a pause ended.
	Resumed []time.Time

	// Tolerance is how long after it fell due a slot may be claimed and be on time. Default 1s.
	Tolerance time.Duration
	// Grace is how long before To a slot without a note is still pending. Default 2s.
	Grace time.Duration
	// MaxSlots is the most slots that are judged: the newest. Default 10,000,000, which take 16 bytes each.
	MaxSlots int
}

func (in input) withDefaults() input {
	in.Tolerance = cmp.Or(in.Tolerance, time.Second)
	in.Grace = cmp.Or(in.Grace, 2*time.Second)
	in.MaxSlots = cmp.Or(in.MaxSlots, 10_000_000)
	return in
}
