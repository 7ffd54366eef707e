package conformance

import (
	"time"

	"github.com/onbeat/onbeat/audit"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/schedule"
)

// Arrival is one run, as the receiver saw it.
type Arrival = trial.Arrival

// evidence is what is known of one scenario once it is over. All times are by the clock of Redis.
type evidence struct {
	// Grids are the slots that each schedule should have.
	Grids map[string]schedule.Grid
	// Arrivals is what the receiver saw, in any order.
	Arrivals []Arrival
	// Until bounds what must have arrived: at that moment nothing was overdue or running.
	Until time.Time
	// Slack is by how much the receiver's clock may be off that of Redis: what is early by less is not noticed.
	Slack time.Duration
	// Away is a time in which nobody was there, if there was one, from the first that was told to leave until the next
	// ran something: the policy of the schedules is to run the latest slot of it. Empty is the part in which surely nobody was.
	Away, Empty span
	// Takeovers say from when on a release worked: no older one may run a slot after it.
	Takeovers []takeover
	// Tasks are the IDs of tasks that were enqueued besides; each must arrive once.
	Tasks []string
	// Quiet says that every fault came while nothing ran: no run may be repeated.
	Quiet bool
	// Leaderless are the times from a fault of the leader until another instance led. The lag of slots that fell due
	// within them is measured apart.
	Leaderless []span
	// Setbacks is how many instances were lost, and how many runs failed: one of those may arrive again for it.
	Setbacks int64
	// Reports is the audit. A slot may arrive again, as a further attempt, only if the audit knows of a run that was lost
	// with its instance, or failed.
	Reports []audit.Report
}

// span is a time without its ends.
type span struct{ From, To time.Time }

func (s span) holds(t time.Time) bool { return t.After(s.From) && t.Before(s.To) }

// takeover is the beginning of a release's work. Releases are numbered in the order of their rollout.
type takeover struct {
	Release string
	From    time.Time
}
