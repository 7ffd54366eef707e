package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/wording"
)

// Trouble is one reason why a schedule is not well.
type Trouble struct {
	// Kind is one of the kinds here, or a word that onbeat status has for schedules, such as "failing" or "hung".
	Kind string `json:"kind"`
	// Since is when it began, as far as that is known.
	Since time.Time `json:"since,omitzero"`
	// Text is one line for a person.
	Text string `json:"text"`
}

// The kinds of trouble that slots show. Those that are also a word of onbeat status mean the same there, of now.
const (
	TroubleBroken  = "broken"  // a promise broke
	TroubleOverdue = "overdue" // slots do not run, and were due longer than [Allowance] ago, or there is no instance
	TroubleMissed  = "missed"  // slots were missed
	TroubleSkipped = "skipped" // two slots in a row, or more, were skipped behind a run: it lasted longer than the time between them
	TroublePaused  = "paused"  // it was paused for the whole time, without a reason
)

// Allowance is how late a slot may begin before it is overdue.
const Allowance = 10 * time.Second

// Add adds a trouble, unless the report has one of that kind.
func (r *Report) Add(t Trouble) {
	if !slices.ContainsFunc(r.Trouble, func(x Trouble) bool { return x.Kind == t.Kind }) {
		r.Trouble = append(r.Trouble, t)
	}
}

// attend takes in whether there is an instance.
func (r *Report) attend(attended bool) {
	if r.Unattended = !attended && r.Overdue > 0; r.Unattended {
		r.Add(Trouble{Kind: TroubleOverdue, Text: wording.Count(r.Overdue, "slot is", "slots are") + " overdue, and no instance runs"})
	}
}

// faults are the slots that make trouble.
type faults struct {
	missed, overdue, skipped stretch
	row                      stretch // slots in a row that were skipped behind a run; skipped is the longest
}

// stretch is a number of slots, and when the first was due.
type stretch struct {
	n     int64
	since time.Time
}

func (x *stretch) add(due time.Time) {
	if x.n++; x.n == 1 {
		x.since = due
	}
}

// see takes in a slot with its verdict. The caller passes the slots in their order.
func (f *faults) see(l *ledger, s *slot, v Verdict, due time.Time) {
	if v == Skipped && l.whys[s.why] == history.ByOverlap {
		f.row.add(due)
	} else {
		f.row = stretch{}
	}
	if f.row.n > f.skipped.n {
		f.skipped = f.row
	}
	switch {
	case v == Missed:
		f.missed.add(due)
	case v == Pending && s.state == silent && due.Before(l.in.Now.Add(-Allowance)): // else it waits for a retry
		f.overdue.add(due)
	}
}

// trouble adds to a report what its slots show.
func (l *ledger) trouble(r *Report, f *faults) {
	if n := r.BrokenSlots(); n > 0 {
		r.Add(Trouble{TroubleBroken, r.Breaks[0].Slot, wording.Count(n, "slot", "slots") + " broke a promise"})
	}
	if n := f.overdue.n; n > 0 {
		r.Add(Trouble{TroubleOverdue, f.overdue.since, wording.Count(n, "slot is", "slots are") + " overdue"})
	}
	if n := f.missed.n; n > 0 {
		r.Add(Trouble{TroubleMissed, f.missed.since, wording.Count(n, "slot was", "slots were") + " missed"})
	}
	if n := f.skipped.n; n > 1 {
		r.Add(Trouble{TroubleSkipped, f.skipped.since, fmt.Sprintf("%d slots in a row were skipped behind a run", n)})
	}
	if l.pausedForNothing(r) {
		by := ""
		if l.in.StoppedBy != "" {
			by = " by " + l.in.StoppedBy
		}
		r.Add(Trouble{TroublePaused, l.in.Stopped, "paused" + by + " for the whole time, without a reason"})
	}
}

// pausedForNothing reports whether the schedule was paused for the whole time of a report, and nobody said why.
func (l *ledger) pausedForNothing(r *Report) bool {
	if !l.in.Paused || l.in.Reason != "" {
		return false
	}
	if l.in.Stopped.IsZero() { // nobody noted the pause
		return r.Slots > 0 && r.Counts[Paused] == r.Slots
	}
	return !l.in.Stopped.After(l.in.From)
}
