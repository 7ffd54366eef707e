package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/schedule"
)

const tenth = 100 * time.Millisecond

// evidenceOf20 returns the evidence of a schedule whose 20 slots each arrived once, 2 ms after their time.
func evidenceOf20(t *testing.T) *Evidence {
	t.Helper()
	zero := time.UnixMilli(1_700_000_000_000).UTC()
	grid, err := schedule.Rule{Every: tenth}.Grid(zero)
	if err != nil {
		t.Fatal(err)
	}
	e := &Evidence{
		Grids:   map[string]schedule.Grid{"a": grid},
		Until:   zero.Add(19 * tenth),
		Slack:   time.Millisecond,
		Reports: []audit.Report{{Schedule: "a", Slots: 20, Counts: map[audit.Verdict]int64{audit.OnTime: 20}}},
	}
	for i := range 20 {
		slot := zero.Add(time.Duration(i) * tenth)
		e.Arrivals = append(e.Arrivals, Arrival{Schedule: "a", Release: "r1", Slot: slot, At: slot.Add(2 * time.Millisecond), Attempt: 1, Fence: int64(100 + i)})
	}
	return e
}

func (e *Evidence) counts(ran, missed int64) {
	e.Reports[0].Counts = map[audit.Verdict]int64{audit.OnTime: ran, audit.Missed: missed}
}

// drop removes arrivals.
func (e *Evidence) drop(from, to int) { e.Arrivals = slices.Delete(e.Arrivals, from, to) }

// again makes one slot arrive again.
func (e *Evidence) again(i, attempt int) {
	a := e.Arrivals[i]
	a.At, a.Attempt, a.Fence = a.At.Add(time.Second), attempt, a.Fence+int64(attempt-1)*1000
	e.Arrivals = append(e.Arrivals, a)
}

// taskTwice makes a task arrive as its first attempt, and as another one.
func (e *Evidence) taskTwice(attempt int) {
	e.Tasks = []string{"x"}
	e.Arrivals = append(e.Arrivals, Arrival{ID: "x", Attempt: 1, Fence: 1}, Arrival{ID: "x", Attempt: attempt, Fence: 2})
}

func TestJudge_findsEachBrokenPromise(t *testing.T) {
	t.Parallel()
	type counts struct{ missed, duplicated, early, offGrid, older, byPolicy, repeated int }
	for name, tt := range map[string]struct {
		change func(*Evidence)
		want   counts
		audit  bool
		broken bool
	}{
		"every slot once": {func(*Evidence) {}, counts{}, true, false},
		"one missed, and the audit says that it ran": {
			func(e *Evidence) { e.drop(4, 5) }, counts{missed: 1}, false, true,
		},
		"one missed, and the audit says so too": {
			func(e *Evidence) {
				slot := e.Arrivals[4].Slot
				e.drop(4, 5)
				e.Reports[0].Counts = map[audit.Verdict]int64{audit.OnTime: 19, audit.Lost: 1}
				e.Reports[0].Breaks = []audit.Break{{Slot: slot, Verdict: audit.Lost, Detail: "gone"}}
			}, counts{missed: 1}, false, true,
		},
		"the beat stopped before the end": {
			func(e *Evidence) { e.drop(15, 20); e.counts(15, 0) }, counts{missed: 5}, true, true,
		},
		"the last have time still": {
			func(e *Evidence) { e.Until = e.Arrivals[14].Slot; e.drop(15, 20); e.counts(15, 0) }, counts{}, true, false,
		},
		"one twice": {func(e *Evidence) { e.again(4, 1) }, counts{duplicated: 1}, true, true},
		"one repeated, and the audit knows why": {
			func(e *Evidence) { e.again(4, 2); e.Reports[0].LostRuns = 1 }, counts{repeated: 1}, true, false,
		},
		"one repeated, and the audit does not know why": {
			func(e *Evidence) { e.again(4, 2) }, counts{repeated: 1}, false, true,
		},
		"one repeated, though nothing ran when the faults came": {
			func(e *Evidence) { e.again(4, 2); e.Reports[0].LostRuns = 1; e.Quiet = true }, counts{duplicated: 1}, true, true,
		},
		"one repeated under the same fence": {
			func(e *Evidence) { e.again(4, 2); e.Arrivals[20].Fence = 104; e.Reports[0].LostRuns = 1 }, counts{repeated: 1}, true, true,
		},
		"one repeated twice as the same attempt": {
			func(e *Evidence) { e.again(4, 2); e.again(4, 2); e.Reports[0].LostRuns = 2 }, counts{duplicated: 1}, true, true,
		},
		"one early": {
			func(e *Evidence) { e.Arrivals[4].At = e.Arrivals[4].Slot.Add(-2 * time.Millisecond) }, counts{early: 1}, true, true,
		},
		"one early by less than the clocks are apart": {
			func(e *Evidence) { e.Arrivals[4].At = e.Arrivals[4].Slot.Add(-time.Millisecond) }, counts{}, true, false,
		},
		"one off the grid in place of one on it": {
			func(e *Evidence) { e.Arrivals[4].Slot = e.Arrivals[4].Slot.Add(time.Millisecond) },
			counts{missed: 1, offGrid: 1}, true, true,
		},
		"one by an older release": {
			func(e *Evidence) {
				e.Takeovers = []Takeover{{"r1", e.Arrivals[0].Slot}, {"r2", e.Arrivals[18].Slot}}
			}, counts{older: 1}, true, true,
		},
		"the newer one takes over after the last": {
			func(e *Evidence) {
				e.Takeovers = []Takeover{{"r1", e.Arrivals[0].Slot}, {"r2", e.Arrivals[19].Slot}}
			}, counts{}, true, false,
		},
		"five fall away while nobody is there": {
			func(e *Evidence) {
				e.Away = Span{e.Arrivals[4].Slot, e.Arrivals[10].Slot}
				e.drop(5, 10)
				e.counts(15, 5)
			}, counts{byPolicy: 5}, true, false,
		},
		"five fall away, and the audit knows of four": {
			func(e *Evidence) {
				e.Away = Span{e.Arrivals[4].Slot, e.Arrivals[10].Slot}
				e.drop(5, 10)
				e.counts(15, 4)
			}, counts{byPolicy: 5}, false, true,
		},
		"five fall away while somebody is there": {
			func(e *Evidence) { e.drop(5, 10); e.counts(15, 5) }, counts{missed: 5}, false, true,
		},
		"two run though nobody was there": {
			func(e *Evidence) {
				e.Away = Span{e.Arrivals[4].Slot, e.Arrivals[10].Slot}
				e.Empty = Span{e.Arrivals[5].Slot, e.Arrivals[9].Slot}
				e.drop(5, 7)
				e.counts(18, 2)
			}, counts{byPolicy: 2}, true, true,
		},
		"the audit says that one was skipped": {
			func(e *Evidence) { e.Reports[0].Counts[audit.Skipped] = 1 }, counts{}, false, true,
		},
		"the audit knows nothing of it": {func(e *Evidence) { e.Reports = nil }, counts{}, false, true},
		"nothing arrives":               {func(e *Evidence) { e.drop(0, 20) }, counts{missed: 20}, false, true},
		"there is no schedule": {
			func(e *Evidence) { e.Grids, e.Arrivals = nil, nil }, counts{}, true, true,
		},
		"a schedule without a slot": {
			func(e *Evidence) { e.Until = time.Time{}; e.drop(0, 20); e.counts(0, 0) }, counts{}, true, true,
		},
		"a task is missed, another comes twice": {
			func(e *Evidence) {
				e.Tasks = []string{"x", "y", "z"}
				e.Arrivals = append(e.Arrivals, Arrival{ID: "x"}, Arrival{ID: "y"}, Arrival{ID: "y"})
			}, counts{missed: 1, duplicated: 1}, true, true,
		},
		"a task is repeated, and an instance was lost": {
			func(e *Evidence) { e.taskTwice(2); e.Setbacks = 1 }, counts{repeated: 1}, true, false,
		},
		"a task is repeated for no reason":      {func(e *Evidence) { e.taskTwice(2) }, counts{duplicated: 1}, true, true},
		"a task is run twice in one attempt":    {func(e *Evidence) { e.taskTwice(1); e.Setbacks = 1 }, counts{duplicated: 1}, true, true},
		"a task that nobody enqueued":           {func(e *Evidence) { e.Arrivals = append(e.Arrivals, Arrival{ID: "x"}) }, counts{}, true, true},
		"a slot of a schedule that nobody made": {func(e *Evidence) { e.Arrivals[4].Schedule, e.Arrivals[4].ID = "b", "b@1" }, counts{missed: 1}, false, true},
		"a request that is no run":              {func(e *Evidence) { e.Arrivals = append(e.Arrivals, Arrival{}) }, counts{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := evidenceOf20(t)
			tt.change(e)
			r := Judge(*e)
			got := counts{r.Missed, r.Duplicated, r.Early, r.OffGrid, r.Older, r.ByPolicy, r.Repeated}
			if got != tt.want || r.Audit != tt.audit {
				t.Errorf("%+v, the audit agrees: %v; want %+v, %v; %q", got, r.Audit, tt.want, tt.audit, r.Wrong)
			}
			if r.OK == tt.broken || tt.broken != (len(r.Wrong) > 0) {
				t.Errorf("ok %v, broken %v: %q", r.OK, tt.broken, r.Wrong)
			}
		})
	}
}

func TestJudge_measuresLagAndGap(t *testing.T) {
	t.Parallel()
	e := evidenceOf20(t)
	e.Arrivals[7].At = e.Arrivals[7].Slot.Add(90 * time.Millisecond) // 12 ms before the next
	r := Judge(*e)
	if r.Slots != 20 || r.P50 != 2 || r.P99 != 90 || r.Max != 90 || r.Gap != 188 {
		t.Errorf("%d slots, p50 %v, p99 %v, max %v, gap %v; want 20, 2, 90, 90, 188", r.Slots, r.P50, r.P99, r.Max, r.Gap)
	}
}

func TestJudge_measuresWhatALostLeaderHeldUpApart(t *testing.T) {
	t.Parallel()
	e := evidenceOf20(t)
	e.Arrivals[7].At = e.Arrivals[7].Slot.Add(90 * time.Millisecond)
	e.Leaderless = []Span{{e.Arrivals[6].Slot, e.Arrivals[8].Slot}} // without its ends
	e.Quiet, e.Follow = true, time.Second
	r := Judge(*e)
	if r.Slots != 20 || r.HeldUp != 1 || r.MaxHeldUp != 90 || r.Max != 2 || r.LedAfter != 200 || !r.OK {
		t.Errorf("%d slots, %d held up by %v, the others by at most %v, led after %v; want 20, 1, 90, 2, 200; %q",
			r.Slots, r.HeldUp, r.MaxHeldUp, r.Max, r.LedAfter, r.Wrong)
	}
}

func TestJudge_findsALeaderThatNobodyFollowedInTime(t *testing.T) {
	t.Parallel()
	e := evidenceOf20(t)
	e.Leaderless = []Span{{e.Arrivals[2].Slot, e.Arrivals[3].Slot}, {e.Arrivals[6].Slot, e.Arrivals[8].Slot}}
	e.Follow = 150 * time.Millisecond
	r := Judge(*e)
	if r.OK || len(r.Wrong) != 1 || !strings.Contains(r.Wrong[0], "200ms") {
		t.Errorf("ok %v, %q", r.OK, r.Wrong)
	}
}

func TestJudge_tellsTheFirstOfMuchThatIsWrong(t *testing.T) {
	t.Parallel()
	e := evidenceOf20(t)
	for i := range 15 {
		e.again(i, 1)
	}
	r := Judge(*e)
	if r.Duplicated != 15 || len(r.Wrong) != maxWrong+1 {
		t.Errorf("%d duplicated: %q", r.Duplicated, r.Wrong)
	}
}
