package audit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// maxBreaks is how many broken slots a report names.
const maxBreaks = 20

// Break is a slot that broke a promise.
type Break struct {
	Slot    time.Time `json:"slot"`
	Verdict Verdict   `json:"verdict"`
	Detail  string    `json:"detail,omitempty"`
}

// Report is the result of an audit of one schedule.
type Report struct {
	Schedule string
	// From and To bound what was judged; both are inclusive. From is later than requested if there were too many slots.
	From, To time.Time
	// Slots is how many slots were expected. Each has a verdict. Only OffGrid counts runs besides them.
	Slots  int64
	Counts map[Verdict]int64
	// Why counts the reasons of slots that did not run, such as "missed: policy once".
	Why map[string]int64

	// Retried is how many slots took more than one run. The others count the runs that were not the last, by what ended
	// them.
	Retried, FailedRuns, LostRuns, ReturnedRuns int64

	// Repeated is how many slots may have run twice, or once more than the history says: they ran or wait, and were due in
	// a time whose writes Redis lost. The verdicts do not show it.
	Repeated int64
	// Overdue is how many of the pending slots were due before the grace began.
	Overdue int64
	// Unattended: slots are overdue, and there is no instance.
	Unattended bool

	// P50, P99 and Max are of the time from the due time to the first claim, over all slots that ran.
	P50, P99, Max time.Duration
	// Gap is the longest time between two runs, and GapAt is when it began. Zero if fewer than two slots ran.
	Gap   time.Duration
	GapAt time.Time

	// Runs are the slots that run now, the oldest first, at most 20.
	Runs []RunningSlot
	// Breaks are the first slots that broke a promise, at most 20.
	Breaks []Break
	// Trouble says why the schedule is not well. It is empty if it is.
	Trouble []Trouble
}

// RunningSlot is a slot that an instance runs now.
type RunningSlot struct {
	Slot  time.Time `json:"slot"`
	Since time.Time `json:"since"`
}

// OK reports whether all is well.
func (r *Report) OK() bool { return len(r.Trouble) == 0 }

// Other counts the slots that were cancelled, changed, early or are unknown: those that a table of the rest leaves out.
func (r *Report) Other() int64 {
	return r.Counts[Cancelled] + r.Counts[Changed] + r.Counts[Unknown] + r.Counts[Early]
}

// Broken reports whether a promise broke.
func (r *Report) Broken() bool { return r.BrokenSlots() > 0 }

// BrokenSlots counts the slots that broke a promise.
func (r *Report) BrokenSlots() int64 {
	var n int64
	for v, count := range r.Counts {
		if v.Broken() {
			n += count
		}
	}
	return n
}

// wireReport is a Report in JSON.
type wireReport struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Slots    int64     `json:"slots"`

	OnTime     int64 `json:"on_time"`
	Late       int64 `json:"late"`
	Missed     int64 `json:"missed"`
	Skipped    int64 `json:"skipped"`
	Paused     int64 `json:"paused"`
	Changed    int64 `json:"changed"`
	Cancelled  int64 `json:"cancelled"`
	Failed     int64 `json:"failed"`
	Pending    int64 `json:"pending"`
	Running    int64 `json:"running"`
	Unknown    int64 `json:"unknown"`
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Early      int64 `json:"early"`
	OffGrid    int64 `json:"off_grid"`

	Why          map[string]int64 `json:"why,omitempty"`
	Repeated     int64            `json:"possibly_repeated"`
	Overdue      int64            `json:"overdue"`
	Unattended   bool             `json:"unattended"`
	Retried      int64            `json:"retried"`
	FailedRuns   int64            `json:"failed_runs"`
	LostRuns     int64            `json:"lost_runs"`
	ReturnedRuns int64            `json:"returned_runs"`
	P50          float64          `json:"lag_p50_ms"`
	P99          float64          `json:"lag_p99_ms"`
	Max          float64          `json:"lag_max_ms"`
	Gap          float64          `json:"longest_gap_ms"`
	GapAt        time.Time        `json:"longest_gap_at,omitzero"`
	Broken       bool             `json:"broken"`
	Breaks       []Break          `json:"breaks,omitempty"`
	Runs         []RunningSlot    `json:"runs,omitempty"`
	Trouble      []Trouble        `json:"trouble,omitempty"`
}

// MarshalJSON writes a field for each verdict, and durations in milliseconds.
func (r Report) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	c := r.Counts
	return json.Marshal(wireReport{
		Schedule: r.Schedule, From: r.From.UTC(), To: r.To.UTC(), Slots: r.Slots,
		OnTime: c[OnTime], Late: c[Late], Missed: c[Missed], Skipped: c[Skipped], Paused: c[Paused], Changed: c[Changed],
		Cancelled: c[Cancelled], Failed: c[Failed], Pending: c[Pending], Running: c[Running], Unknown: c[Unknown],
		Lost: c[Lost], Duplicated: c[Duplicated], Early: c[Early], OffGrid: c[OffGrid],
		Why: r.Why, Repeated: r.Repeated, Overdue: r.Overdue, Unattended: r.Unattended, Retried: r.Retried, FailedRuns: r.FailedRuns, LostRuns: r.LostRuns, ReturnedRuns: r.ReturnedRuns,
		P50: ms(r.P50), P99: ms(r.P99), Max: ms(r.Max), Gap: ms(r.Gap), GapAt: r.GapAt, Broken: r.Broken(), Breaks: r.Breaks, Runs: r.Runs, Trouble: r.Trouble,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Report) UnmarshalJSON(text []byte) error {
	var w wireReport
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	span := func(ms float64) time.Duration { return time.Duration(math.Round(ms*1000)) * time.Microsecond }
	*r = Report{
		Schedule: w.Schedule, From: w.From, To: w.To, Slots: w.Slots, Counts: map[Verdict]int64{}, Why: w.Why,
		Retried: w.Retried, FailedRuns: w.FailedRuns, LostRuns: w.LostRuns, ReturnedRuns: w.ReturnedRuns,
		Repeated: w.Repeated, Overdue: w.Overdue, Unattended: w.Unattended,
		P50: span(w.P50), P99: span(w.P99), Max: span(w.Max), Gap: span(w.Gap), GapAt: w.GapAt, Breaks: w.Breaks, Runs: w.Runs, Trouble: w.Trouble,
	}
	for v, n := range map[Verdict]int64{
		OnTime: w.OnTime, Late: w.Late, Missed: w.Missed, Skipped: w.Skipped, Paused: w.Paused, Changed: w.Changed,
		Cancelled: w.Cancelled, Failed: w.Failed, Pending: w.Pending, Running: w.Running, Unknown: w.Unknown,
		Lost: w.Lost, Duplicated: w.Duplicated, Early: w.Early, OffGrid: w.OffGrid,
	} {
		if n != 0 {
			r.Counts[v] = n
		}
	}
	return nil
}

func keep(list []Break, b Break) []Break {
	if len(list) < maxBreaks {
		list = append(list, b)
	}
	return list
}

// report counts the verdicts as they are now.
func (l *ledger) report() Report {
	r := Report{
		Schedule: l.in.Schedule, From: l.in.From, To: l.in.To, Slots: int64(len(l.slots)),
		Counts: map[Verdict]int64{}, FailedRuns: l.failed, LostRuns: l.lost, ReturnedRuns: l.returned,
	}
	var f faults
	lags, claims := make([]int32, 0, len(l.slots)), make([]int64, 0, len(l.slots))
	for i := range l.slots {
		s := &l.slots[i]
		v := l.verdict(s)
		r.Counts[v]++
		if v == Missed || v == Skipped {
			if r.Why == nil {
				r.Why = map[string]int64{}
			}
			r.Why[v.String()+": "+l.whys[s.why]]++
		}
		if v.Broken() {
			r.Breaks = keep(r.Breaks, Break{Slot: time.UnixMilli(s.ms).UTC(), Verdict: v, Detail: l.detail(s, v)})
		}
		if s.flags&retried != 0 {
			r.Retried++
		}
		due := l.due(s.ms)
		f.see(l, s, v, due)
		if v == Running && len(r.Runs) < maxBreaks {
			r.Runs = append(r.Runs, RunningSlot{time.UnixMilli(s.ms).UTC(), l.began[s.ms].UTC()})
		}
		if s.flags&perhaps != 0 || (v == Pending || v == Running) && repeats(l.in.Losses, due, time.Time{}) {
			r.Repeated++
		}
		if v == Pending && due.Before(l.in.Now.Add(-l.in.Grace)) {
			r.Overdue++
		}
		if s.flags&ran != 0 {
			lags = append(lags, s.lag)
			claims = append(claims, due.UnixMilli()+int64(s.lag))
		}
	}
	if l.stray > 0 {
		r.Counts[OffGrid] = l.stray
		r.Breaks = append(r.Breaks, l.strays...)
		r.Breaks = r.Breaks[:min(len(r.Breaks), maxBreaks)]
	}
	r.times(lags, claims)
	l.trouble(&r, &f)
	return r
}

func (l *ledger) due(ms int64) time.Time {
	at := time.UnixMilli(ms)
	if p := l.period(at); p != nil {
		return p.Rule.JitterFor(l.in.Schedule, at)
	}
	return at
}

func (r *Report) times(lags []int32, claims []int64) {
	if len(lags) == 0 {
		return
	}
	slices.Sort(lags)
	at := func(share float64) time.Duration {
		return time.Duration(lags[int(share*float64(len(lags)-1)+0.5)]) * time.Millisecond
	}
	r.P50, r.P99, r.Max = at(0.50), at(0.99), at(1)
	slices.Sort(claims)
	for i := 1; i < len(claims); i++ {
		if gap := time.Duration(claims[i]-claims[i-1]) * time.Millisecond; gap > r.Gap {
			r.Gap, r.GapAt = gap, time.UnixMilli(claims[i-1]).UTC()
		}
	}
}

func (l *ledger) detail(s *slot, v Verdict) string {
	switch v {
	case Early:
		return fmt.Sprintf("claimed %d ms before it was due", -s.lag)
	case Duplicated:
		return "ran again though nothing went wrong with the run before"
	case Lost:
		if s.state == again {
			return fmt.Sprintf("attempt %d should be followed by another, but its task is gone", max(s.attempt, 1))
		}
		return "the history has no outcome for it, and its task is neither due nor running"
	}
	return ""
}
