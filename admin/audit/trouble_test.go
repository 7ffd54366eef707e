package audit

import (
	"slices"
	"testing"
	"time"
)

func kindsOf(r *Report) []string {
	list := []string{}
	for _, x := range r.Trouble {
		list = append(list, x.Kind)
	}
	return list
}

func TestTrouble_ofSlots(t *testing.T) {
	t.Parallel()
	waits := func(now float64) func(*question) {
		return func(q *question) {
			q.Now, q.stands = at(now), func(time.Time) bool { return true }
		}
	}
	stopped := func(since float64, reason string) func(*question) {
		return func(q *question) {
			q.Settled, q.Paused, q.Stopped, q.Reason = at(-1), true, at(since), reason
		}
	}
	for name, c := range map[string]struct {
		lines  []string
		change func(*question)
		want   string
		since  time.Time
	}{
		"well":            {lines: ranBut()},
		"lost":            {lines: ranBut(3), want: TroubleBroken, since: at(3)},
		"missed":          {lines: append(ranBut(3), "beat@{3} missed outage"), want: TroubleMissed, since: at(3)},
		"skipped once":    {lines: append(ranBut(3, 5), "beat@{3} skipped overlap", "beat@{5} skipped overlap")},
		"skipped on":      {lines: append(ranBut(3, 6, 7), "beat@{3} skipped overlap", "beat@{6}..{7} skipped 2 overlap"), want: TroubleSkipped, since: at(6)},
		"skipped as full": {lines: append(ranBut(6, 7), "beat@{6}..{7} skipped 2 backlog")},
		"overdue":         {lines: ranBut(9), change: waits(19.1), want: TroubleOverdue, since: at(9)},
		"allowed":         {lines: ranBut(9), change: waits(18.9)},
		"to be retried":   {lines: append(ranBut(9), "beat@{9} failed 1 {9.002}"), change: waits(40)},
		"paused":          {change: stopped(-5, ""), want: TroublePaused, since: at(-5)},
		"with a reason":   {change: stopped(-5, "the database moves")},
		"paused lately":   {change: stopped(1, "")},
		"failed for good": {lines: append(ranBut(9), "beat@{9} dead 1 {9.002}")}, // whether it was the last run, admin says
	} {
		q := beats(t)
		q.notes = slices.Values(notes(t, c.lines...))
		if c.change != nil {
			c.change(&q)
		}
		r := judge(q)
		var since time.Time
		if len(r.Trouble) > 0 {
			since = r.Trouble[0].Since
		}
		want := []string{}
		if c.want != "" {
			want = append(want, c.want)
		}
		if !slices.Equal(kindsOf(&r), want) || !since.Equal(c.since) || r.OK() != (c.want == "") {
			t.Errorf("%s: %+v, want %v since %v", name, r.Trouble, want, c.since)
		}
	}
}

func TestTrouble_withoutAnInstance(t *testing.T) {
	t.Parallel()
	r := Report{Overdue: 1}
	if r.attend(true); r.Unattended || !r.OK() {
		t.Errorf("%+v", r)
	}
	if r.attend(false); !r.Unattended || r.OK() {
		t.Errorf("%+v", r)
	}
}

// A slot that runs has its own verdict, however late it is, also if it is a retry, until its run ends.
func TestRunning_isAVerdict(t *testing.T) {
	t.Parallel()
	q := beats(t)
	q.Now = at(100)
	l := open(q.input)
	for _, n := range notes(t, append(ranBut(7, 8, 9), "beat@{8} failed 1 {8.002}")...) {
		l.note(n)
	}
	for _, slot := range []float64{7, 8, 9} {
		l.runsSince(at(slot), at(slot+1))
	}
	l.asked = true
	for _, n := range notes(t, "beat@{9} failed 1 {10}") {
		l.note(n)
	}
	r := l.report()
	if r.Counts[Running] != 2 || r.Counts[Pending] != 1 || r.Counts[OnTime] != 7 || !r.OK() || r.Overdue != 1 {
		t.Errorf("%+v", r)
	}
	want := []RunningSlot{{at(7), at(8)}, {at(8), at(9)}}
	if !slices.Equal(r.Runs, want) {
		t.Errorf("%v, want %v", r.Runs, want)
	}
}

// A run from before Redis came back empty is judged by the rule of that time, as the archive has it. Without that rule, it is not judged.
func TestForgotten_isNeverOffTheGrid(t *testing.T) {
	t.Parallel()
	ran := []string{"beat@{0.5} done 1 {0.502}", "beat@{1.5} done 1 {1.502}", "beat@{2.5} failed 1 {2.502}"}
	for i := range 4 {
		k := string(rune('6' + i))
		ran = append(ran, "beat@{"+k+"} done 1 {"+k+".001}")
	}
	for name, c := range map[string]struct {
		f    *forgotten
		want map[Verdict]int64
	}{
		"known":       {&forgotten{name: "beat", since: at(-100), until: at(5.9)}, map[Verdict]int64{OnTime: 6, Unknown: 4}},
		"not known":   {&forgotten{name: "beat", until: at(5.9)}, map[Verdict]int64{OnTime: 4}},
		"not noticed": {nil, map[Verdict]int64{OnTime: 4, OffGrid: 3}},
	} {
		q := beats(t)
		q.Periods = []period{every(t, time.Second, at(6))}
		list := notes(t, ran...)
		if f := c.f; f != nil {
			if !f.since.IsZero() {
				rule := q.Periods[0].Rule
				f.rule = &rule
			}
			for i := range list {
				list[i].At = list[i].Claimed
				f.note(&list[i])
			}
			f.complete(&q.input)
		}
		q.notes = slices.Values(list)
		r := judge(q)
		for v := OnTime; v < verdicts; v++ {
			if r.Counts[v] != c.want[v] {
				t.Errorf("%s: %d %s, want %d: %+v", name, r.Counts[v], v, c.want[v], r.Breaks)
			}
		}
	}
}
