package trial

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/schedule"
)

// Result is the outcome of one scenario.
type Result struct {
	Scenario   string   `json:"scenario"`
	OK         bool     `json:"ok"`
	Skipped    string   `json:"skipped,omitempty"` // why it was not tried
	Seconds    float64  `json:"seconds"`
	Slots      int      `json:"slots"`
	Missed     int      `json:"missed"`
	Duplicated int      `json:"duplicated"`
	OffGrid    int      `json:"off_grid"`
	Early      int      `json:"early"`
	Older      int      `json:"by_an_older_release"`
	ByPolicy   int      `json:"missed_by_policy"` // no instance was there, and missed: once
	Repeated   int      `json:"repeated"`         // runs that came again, as the next attempt, after a loss of their instance
	Tasks      int      `json:"tasks,omitempty"`
	Gap        float64  `json:"longest_gap_ms"`
	P50        float64  `json:"lag_p50_ms"`
	P99        float64  `json:"lag_p99_ms"`
	Max        float64  `json:"lag_max_ms"`
	LedAfter   float64  `json:"led_after_ms,omitempty"` // the longest time from the loss of a leader until another led
	HeldUp     int      `json:"held_up,omitempty"`      // slots of a quiet scenario that came due while no instance led
	MaxHeldUp  float64  `json:"lag_max_held_up_ms,omitempty"`
	Audit      bool     `json:"audit_agrees"`
	Wrong      []string `json:"wrong,omitempty"`
	Note       string   `json:"note,omitempty"`
	Logs       []string `json:"logs,omitempty"` // the last lines of the processes' logs, if something was wrong

	lags    []time.Duration
	repeats map[string]int64 // by schedule
	more    int              // how many faults there are beyond Wrong
}

// maxWrong is how many faults a result names.
const maxWrong = 10

func (r *Result) wrong(format string, args ...any) {
	r.OK = false
	if len(r.Wrong) < maxWrong {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
		return
	}
	r.more++
}

// Judge compares the evidence with the promises.
func Judge(e Evidence) *Result {
	r := &Result{OK: true, repeats: map[string]int64{}}
	if len(e.Grids) == 0 {
		r.wrong("no schedule to judge")
	}
	by := map[string][]Arrival{}
	for _, a := range e.Arrivals {
		by[a.Schedule] = append(by[a.Schedule], a)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Grids)) {
		r.judgeSchedule(e, name, e.Grids[name], by[name])
	}
	r.judgeTasks(e, by[""])
	r.judgeStrangers(e)
	r.judgeTakeovers(e)
	r.judgeLosses(e)
	if !e.Unaudited {
		r.judgeAudit(e, by)
	}
	r.times()
	if r.more > 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("and %d more", r.more))
	}
	return r
}

// judgeSchedule checks every slot that one schedule should have had, and every run that it had.
func (r *Result) judgeSchedule(e Evidence, name string, grid schedule.Grid, list []Arrival) {
	seen := map[int64][]Arrival{}
	last := e.Until
	for _, a := range list {
		seen[a.Slot.UnixMilli()] = append(seen[a.Slot.UnixMilli()], a)
		if !onGrid(grid, a.Slot) {
			r.OffGrid++
			r.wrong("%s: %s is not on the grid", name, clock(a.Slot))
		}
		if early := a.Slot.Sub(a.At); early > e.Slack {
			r.Early++
			r.wrong("%s: slot %s arrived %s early", name, clock(a.Slot), early)
		}
		if a.Slot.After(last) {
			last = a.Slot
		}
	}
	slots, absent, within := 0, []time.Time{}, 0
	for slot := range grid.Between(time.Time{}, last) {
		runs := seen[slot.UnixMilli()]
		switch {
		case len(runs) > 0:
			r.judgeRuns(e, name, slot, runs)
			if e.Empty.holds(slot) {
				within++
			}
		case slot.After(e.Until):
			continue // it may be pending
		default:
			absent = append(absent, slot)
		}
		slots++
	}
	r.Slots += slots
	if slots == 0 {
		r.wrong("%s: it had no slots", name)
	}
	r.judgeAbsent(e, name, absent)
	if within > 1 {
		r.wrong("%s: %d slots from the time without an instance ran, and the policy is to run only the latest", name, within)
	}
	r.Gap = max(r.Gap, Millis(longestGap(list)))
}

func onGrid(grid schedule.Grid, slot time.Time) bool {
	return grid.Next(slot.Add(-time.Millisecond)).Equal(slot)
}

// judgeRuns checks the runs of one slot. More than one is right only if each is a further attempt.
func (r *Result) judgeRuns(e Evidence, name string, slot time.Time, runs []Arrival) {
	slices.SortFunc(runs, func(a, b Arrival) int { return a.At.Compare(b.At) })
	r.measure(e, slot, runs[0].At.Sub(slot))
	if len(runs) == 1 {
		return
	}
	attempts := map[int]bool{}
	for _, a := range runs {
		attempts[a.Attempt] = true
	}
	if len(attempts) == len(runs) && !e.Quiet { // the audit is asked for the reason
		r.Repeated += len(runs) - 1
		r.repeats[name] += int64(len(runs) - 1)
		r.judgeFences(fmt.Sprintf("%s: slot %s", name, clock(slot)), runs)
		return
	}
	r.Duplicated++
	r.wrong("%s: slot %s arrived %d times: %s", name, clock(slot), len(runs), Describe(runs))
}

// judgeFences checks that each further attempt has a larger fence, by which a receiver could refuse the one before.
func (r *Result) judgeFences(what string, runs []Arrival) {
	slices.SortFunc(runs, func(a, b Arrival) int { return a.Attempt - b.Attempt })
	for i, a := range runs[1:] {
		if before := runs[i]; a.Fence <= before.Fence {
			r.wrong("%s: attempt %d has fence %d, and attempt %d had %d", what, a.Attempt, a.Fence, before.Attempt, before.Fence)
		}
	}
}

// judgeAbsent separates slots that the policy dropped, because no instance was there, from slots that were lost.
func (r *Result) judgeAbsent(e Evidence, name string, absent []time.Time) {
	for _, slot := range absent {
		if e.Away.holds(slot) {
			r.ByPolicy++
			continue
		}
		r.Missed++
		r.wrong("%s: slot %s never arrived", name, clock(slot))
	}
}

// judgeTasks checks the tasks that no schedule made. As with slots, a further attempt is right if there is a reason.
func (r *Result) judgeTasks(e Evidence, list []Arrival) {
	seen := map[string][]Arrival{}
	for _, a := range list {
		seen[a.ID] = append(seen[a.ID], a)
	}
	r.Tasks = len(e.Tasks)
	for _, id := range e.Tasks {
		runs := seen[id]
		attempts := map[int]bool{}
		for _, a := range runs {
			attempts[a.Attempt] = true
		}
		switch n := len(runs); {
		case n == 0:
			r.Missed++
			r.wrong("task %s never arrived", id)
		case n > 1 && len(attempts) == n && e.Setbacks > 0:
			r.Repeated += n - 1
			r.judgeFences("task "+id, runs)
		case n > 1:
			r.Duplicated++
			r.wrong("task %s arrived %d times: %s", id, n, Describe(runs))
		}
	}
}

// judgeStrangers reports runs of tasks that no one asked for.
func (r *Result) judgeStrangers(e Evidence) {
	asked := map[string]bool{}
	for _, id := range e.Tasks {
		asked[id] = true
	}
	for _, a := range e.Arrivals {
		if _, known := e.Grids[a.Schedule]; !known && a.ID != "" && !asked[a.ID] {
			r.wrong("task %s of schedule %q arrived, and no caller enqueued it", a.ID, a.Schedule)
		}
	}
}

// judgeTakeovers reports slots that an older release ran although a newer one had taken over before they came due.
func (r *Result) judgeTakeovers(e Evidence) {
	order := map[string]int{}
	for i, t := range e.Takeovers {
		order[t.Release] = i
	}
	for _, a := range e.Arrivals {
		for i := order[a.Release] + 1; i < len(e.Takeovers); i++ {
			if t := e.Takeovers[i]; a.Slot.After(t.From) {
				r.Older++
				r.wrong("%s: slot %s was run by %s, %s after %s had taken over", a.Schedule, clock(a.Slot), a.Release, a.Slot.Sub(t.From), t.Release)
				break
			}
		}
	}
}

// judgeLosses reports a leader that nobody followed for longer than its lease explains.
func (r *Result) judgeLosses(e Evidence) {
	for _, s := range e.Leaderless {
		took := s.To.Sub(s.From)
		r.LedAfter = max(r.LedAfter, Millis(took))
		if took > e.Follow {
			r.wrong("another instance led only %s after the leader was lost, later than its lease explains", took.Round(time.Millisecond))
		}
	}
}

func longestGap(list []Arrival) (longest time.Duration) {
	at := make([]time.Time, len(list))
	for i, a := range list {
		at[i] = a.At
	}
	slices.SortFunc(at, time.Time.Compare)
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i].Sub(at[i-1]))
	}
	return longest
}

// measure records the lag of a slot.
func (r *Result) measure(e Evidence, slot time.Time, lag time.Duration) {
	if e.Quiet && slices.ContainsFunc(e.Leaderless, func(s Span) bool { return s.holds(slot) }) {
		r.HeldUp++
		r.MaxHeldUp = max(r.MaxHeldUp, Millis(lag))
		return
	}
	r.lags = append(r.lags, lag)
}

// Add adds the figures of a result of others.
func (r *Result) Add(o *Result) {
	r.Slots += o.Slots
	r.Missed += o.Missed
	r.Duplicated += o.Duplicated
	r.OffGrid += o.OffGrid
	r.Early += o.Early
	r.Repeated += o.Repeated
	r.Gap = max(r.Gap, o.Gap)
	r.Wrong = append(r.Wrong, o.Wrong...)
	r.lags = append(r.lags, o.lags...)
	r.times()
}

func (r *Result) times() {
	n := len(r.lags)
	if n == 0 {
		return
	}
	slices.Sort(r.lags)
	r.P50, r.P99, r.Max = Millis(r.lags[n/2]), Millis(r.lags[(n*99-1)/100]), Millis(r.lags[n-1])
}
