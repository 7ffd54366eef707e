package trial

import (
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/schedule"
)

// Evidence is what is known about one scenario when it is over. All times are by the clock of Redis.
type Evidence struct {
	// Grids are the slots that each schedule should have.
	Grids map[string]schedule.Grid
	// Arrivals is what the receiver saw, in any order.
	Arrivals []Arrival
	// Until bounds what must have arrived: at that moment nothing was overdue or running.
	Until time.Time
	// Slack is by how much the receiver's clock may differ from that of Redis: a run that is early by less is not noticed.
	Slack time.Duration
	// Away is a time without an instance, if there was one, from when the first was told to leave until the next ran a
	// task. The policy of the schedules is to run its latest slot. Empty is the part of it in which surely no instance was
	// there.
	Away, Empty Span
	// Takeovers say from when on a release worked: no older release may run a later slot.
	Takeovers []Takeover
	// Tasks are the IDs of tasks that a caller enqueued; each must arrive once.
	Tasks []string
	// Quiet says that every fault came while no task ran: no run may be repeated.
	Quiet bool
	// Leaderless are the times from the loss of a leader until another instance led. In a quiet scenario the lag of slots that
	// came due within them is measured separately.
	Leaderless []Span
	// Follow is how long another instance may take to lead after a loss.
	Follow time.Duration
	// Setbacks is how many instances were lost and how many runs failed. For each, one run may be repeated.
	Setbacks int64
	// Reports are the audit. A slot may arrive again, as a further attempt, only if the audit has a run of it that failed
	// or was lost with its instance. Unaudited says that nobody asked the audit.
	Reports   []audit.Report
	Unaudited bool
}

// Span is a time without its ends.
type Span struct{ From, To time.Time }

func (s Span) holds(t time.Time) bool { return t.After(s.From) && t.Before(s.To) }

// Takeover is when a release began to work. Releases are numbered in the order of their rollout.
type Takeover struct {
	Release string
	From    time.Time
}
