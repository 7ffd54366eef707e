package beats

import (
	"fmt"
	"testing"
	"time"
)

var zero = time.Unix(1_700_000_000, 0)

// at is so many seconds behind zero.
func at(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }

// ran makes a run of its own at each of these seconds.
func ran(seconds ...float64) (list []Run) {
	for i, s := range seconds {
		list = append(list, Run{fmt.Sprint(i), at(s), true})
	}
	return list
}

func TestJudge_countsEachFaultOnce(t *testing.T) {
	t.Parallel()
	type counts struct{ onTime, offGrid, missed, doubled, down, madeUp int }
	for name, c := range map[string]struct {
		runs []Run
		down []Span
		want counts
	}{
		"each slot":                       {ran(0, 1.01, 2.2, 3, 4), nil, counts{onTime: 5}},
		"one missed":                      {ran(0, 1, 3, 4), nil, counts{onTime: 4, missed: 1}},
		"one doubled":                     {ran(0, 1, 1.1, 2, 3, 4), nil, counts{onTime: 5, doubled: 1}},
		"one late":                        {ran(0, 1.5, 2, 3, 4), nil, counts{onTime: 4, offGrid: 1}},
		"one early":                       {ran(0, 1, 1.6, 3, 4), nil, counts{onTime: 4, offGrid: 1}},
		"late by more than an interval":   {ran(0, 2, 2.01, 3, 4), nil, counts{onTime: 4, offGrid: 1}},
		"a burst behind a silence":        {ran(0, 3.9, 3.91, 3.92, 4), nil, counts{onTime: 2, offGrid: 3}},
		"on another grid":                 {ran(0.5, 1.5, 2.5, 3.5), nil, counts{offGrid: 4, missed: 1}},
		"two grids side by side":          {ran(0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4), nil, counts{onTime: 5, doubled: 4}},
		"nothing":                         {nil, nil, counts{missed: 5}},
		"nobody was there":                {ran(0, 4), []Span{{at(0.5), at(3.5)}}, counts{onTime: 2, down: 3}},
		"nobody was there, one made up":   {ran(0, 3.6, 4), []Span{{at(0.5), at(3.5)}}, counts{onTime: 2, down: 2, madeUp: 1}},
		"nobody was there, and one twice": {ran(0, 3.5, 3.6, 4, 4), []Span{{at(1.5), at(2.5)}}, counts{onTime: 2, missed: 0, offGrid: 2, madeUp: 1}},
		"of before and behind":            {ran(-1, -0.51, 0, 1, 2, 3, 4, 4.6), nil, counts{onTime: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Judge(Rule{Every: time.Second, Anchor: at(-10), From: at(-0.7), Until: at(4.5), Down: c.down}, c.runs)
			got := counts{v.Count(OnTime), v.Count(OffGrid), v.Count(Missed), v.Count(Doubled), v.Count(Down), v.Count(MadeUp)}
			if got != c.want {
				t.Errorf("%+v, want %+v: %v", got, c.want, v.Marks)
			}
		})
	}
}

func TestJudge_putsAttemptsOfOneWorkTogether(t *testing.T) {
	t.Parallel()
	v := Judge(Rule{Every: time.Second, Anchor: zero, From: at(-0.5), Until: at(3.5)}, []Run{
		{"a", at(0), true}, {"b", at(1), false}, {"b", at(1.6), true}, {"c", at(2), false}, {"d", at(3), true}, {"d", at(3.1), true},
	})
	if v.Repeated != 2 || v.Lost != 1 || v.Faults() != 0 {
		t.Errorf("%d repeated, %d lost, %d faults; want 2, 1, 0: %v", v.Repeated, v.Lost, v.Faults(), v.Marks)
	}
}

func TestJudge_findsTheLongestSilence(t *testing.T) {
	t.Parallel()
	r := Rule{Every: time.Second, Anchor: zero, From: at(-0.5), Until: at(11.5)}
	runs := ran(0, 1, 4, 5, 10, 11)
	if v := Judge(r, runs); v.Silence != 5*time.Second {
		t.Errorf("%s, want 5 s", v.Silence)
	}
	r.Down, r.Quiet = []Span{{at(6), at(7)}}, []Span{{at(7), at(8)}}
	if v := Judge(r, runs); v.Silence != 3*time.Second {
		t.Errorf("beside the times in which a silence is no fault: %s, want 3 s", v.Silence)
	}
	r.Until = at(19.5)
	if v := Judge(r, runs); v.Silence != 8500*time.Millisecond {
		t.Errorf("up to the end: %s, want 8.5 s", v.Silence)
	}
}

func TestAnchored_takesTheGridWithTheFewestFaults(t *testing.T) {
	t.Parallel()
	runs := ran(0.3, 1.3, 2.9, 3.9, 4.9, 5.9)
	r := Rule{Every: time.Second, From: at(-0.5), Until: at(6)}.Anchored([]time.Time{at(0.3), at(2.9)}, runs)
	if !r.Anchor.Equal(at(2.9)) {
		t.Errorf("%s, want %s", r.Anchor, at(2.9))
	}
}
