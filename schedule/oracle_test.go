package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// oddChanges are changes of the clock that have broken schedulers.
var oddChanges = []struct{ zone, at, what string }{
	{"Europe/Berlin", "2026-03-29T01:00:00Z", "an hour forward"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z", "an hour back"},
	{"America/New_York", "2026-03-08T07:00:00Z", "an hour forward, west"},
	{"America/New_York", "2026-11-01T06:00:00Z", "an hour back, west"},
	{"Europe/Dublin", "2026-10-25T01:00:00Z", "winter time is the negative one"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z", "half an hour forward"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z", "half an hour back"},
	{"Antarctica/Troll", "2026-03-29T01:00:00Z", "two hours forward"},
	{"Antarctica/Troll", "2026-10-25T01:00:00Z", "two hours back"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z", "a day left out"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z", "a day left out"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z", "midnight left out"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z", "midnight put off"},
	{"Asia/Beirut", "2026-03-28T22:00:00Z", "midnight left out"},
	{"Asia/Beirut", "2026-10-24T21:00:00Z", "midnight put off"},
	{"Africa/Cairo", "2026-04-23T22:00:00Z", "midnight left out"},
	{"Africa/Cairo", "2026-10-29T21:00:00Z", "midnight put off"},
	{"Asia/Kathmandu", "1985-12-31T18:30:00Z", "a quarter forward, for good"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z", "44 minutes and a half"},
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z", "half an hour back, for good"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z", "half an hour forward, for good"},
	{"America/Caracas", "2007-12-09T07:00:00Z", "half an hour back, for good"},
	{"Pacific/Norfolk", "2015-10-03T14:30:00Z", "half an hour back, for good"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z", "Ramadan begins"},
	{"America/Nuuk", "2026-03-29T01:00:00Z", "the last hour of a day left out"},
	{"America/Havana", "2026-03-08T05:00:00Z", "midnight left out"},
	{"Asia/Tehran", "2022-03-21T20:30:00Z", "midnight left out"},
	{"America/St_Johns", "1988-04-03T03:31:00Z", "two hours forward at a minute past midnight"},
	{"America/Los_Angeles", "2438-03-14T10:00:00Z", "far ahead"},
	{"Europe/Berlin", "9998-10-25T01:00:00Z", "farther"},
}

// A walk is what the clock on the wall shows at each step of (from, to], and at
// which instant it showed that first and last.
type walk struct {
	step        time.Duration
	at          []int64
	wall        []time.Time // dressed up as UTC
	first, last map[int64]int64
	from, to    int64
}

func takeWalk(loc *time.Location, from, to time.Time, step time.Duration) *walk {
	k := &walk{step: step, first: map[int64]int64{}, last: map[int64]int64{}, from: from.Unix(), to: to.Unix()}
	lead := 3 * time.Hour // how far times come again here; the changes by a day go forward
	for t := from.Add(-lead); !t.After(to.Add(lead)); t = t.Add(step) {
		y, m, d := t.In(loc).Date()
		h, mi, s := t.In(loc).Clock()
		w := time.Date(y, m, d, h, mi, s, 0, time.UTC)
		k.at, k.wall = append(k.at, t.Unix()), append(k.wall, w)
		if _, ok := k.first[w.Unix()]; !ok {
			k.first[w.Unix()] = t.Unix()
		}
		k.last[w.Unix()] = t.Unix()
	}
	return k
}

// slots asks of each instant whether it is a slot.
func (k *walk) slots(n *naive, dst DST) []int64 {
	var slots []int64
	for i, at := range k.at {
		if at <= k.from || at > k.to {
			continue
		}
		is := n.matches(k.wall[i])
		switch w := k.wall[i].Unix(); {
		case dst.Overlap == DSTOverlapFirst && k.first[w] != at, dst.Overlap == DSTOverlapSecond && k.last[w] != at:
			is = false
		}
		if dst.Gap == DSTGapAfter {
			for w := k.wall[i-1].Add(k.step); w.Before(k.wall[i]); w = w.Add(k.step) {
				is = is || n.matches(w)
			}
		}
		if is {
			slots = append(slots, at)
		}
	}
	return slots
}

func TestCronGrid_agreesWithBruteForceAroundOddChanges(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	for _, change := range oddChanges {
		t.Run(change.zone+" "+change.at, func(t *testing.T) {
			t.Parallel()
			loc, err := time.LoadLocation(change.zone)
			if err != nil {
				t.Fatal(err)
			}
			at := ts(change.at)
			if s := mustZone(t, change.zone).at(at.Unix()); s.start != at.Unix() || s.before == s.offset {
				t.Fatalf("%s: the clock does not change there: %+v", change.what, s)
			}
			rng := rand.New(rand.NewPCG(uint64(at.Unix()), 1))
			walks := map[bool]*walk{true: takeWalk(loc, at.Add(-2*time.Hour), at.Add(2*time.Hour), time.Second)}
			if at.Second() == 0 {
				walks[false] = takeWalk(loc, at.Add(-30*time.Hour), at.Add(30*time.Hour), time.Minute)
			}
			for round := range rounds {
				fine := at.Second() != 0 || round%4 == 3
				k := walks[fine]
				from, to := time.Unix(k.from, 0), time.Unix(k.to, 0)
				n := randomExpr(rng, shape{seconds: fine, busy: round%2 == 0})
				r := cronIn(n.text, change.zone)
				if r.Validate() != nil {
					continue // it would never run
				}
				for _, gap := range []GapPolicy{DSTGapSkip, DSTGapAfter} {
					for _, overlap := range []OverlapPolicy{DSTOverlapFirst, DSTOverlapSecond, DSTOverlapBoth} {
						r.DST = DST{gap, overlap}
						compareSlots(t, r, from, to, k.slots(n, r.DST))
					}
				}
			}
		})
	}
}

// compareSlots holds Between, Prev and Count against the slots wanted in (from, to].
func compareSlots(t *testing.T, r Rule, from, to time.Time, want []int64) {
	t.Helper()
	g := mustGrid(t, r, time.Time{})
	var got, back []int64
	for s := range g.Between(from, to) {
		got = append(got, s.Unix())
	}
	for s := g.Prev(to.Add(time.Millisecond)); s.After(from); s = g.Prev(s) {
		back = append(back, s.Unix())
	}
	slices.Reverse(back)
	if !slices.Equal(got, want) {
		t.Fatalf("%s in (%v, %v]:\n got %v\nwant %v", Describe(r), from, to, got, want)
	}
	if !slices.Equal(back, want) {
		t.Fatalf("%s backwards in (%v, %v]:\n got %v\nwant %v", Describe(r), from, to, back, want)
	}
	if n := g.Count(from, to); n != int64(len(want)) {
		t.Fatalf("%s: Count(%v, %v) = %d, want %d", Describe(r), from, to, n, len(want))
	}
}

func mustZone(t testing.TB, name string) *zone {
	t.Helper()
	z, err := loadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestCronGrid_agreesWithBruteForceOnDates(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 7))
	checked := 0
	for range 400 {
		n := randomExpr(rng, shape{specials: true})
		// Only the date matters here, so a step of a day is enough: midnight.
		n.field[1], n.field[2] = naiveField{text: "0", set: steps(0, 0, 1)}, naiveField{text: "0", set: steps(0, 0, 1)}
		r := Cron("0 0 "+n.field[3].text+" "+n.field[4].text+" "+n.field[5].text, nil)
		from := time.Date(1970+rng.IntN(500), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), 0, 0, 0, 0, time.UTC)
		to := from.AddDate(5, 0, 0)
		var want []int64
		for d := from.AddDate(0, 0, 1); !d.After(to); d = d.AddDate(0, 0, 1) {
			if n.matches(d) {
				want = append(want, d.Unix())
			}
		}
		if err := r.Validate(); err != nil {
			if len(want) > 0 {
				t.Fatalf("%v, but it runs at %v", err, time.Unix(want[0], 0).UTC())
			}
			continue
		}
		compareSlots(t, r, from, to, want)
		checked++
	}
	if checked < 300 {
		t.Fatalf("only %d expressions were possible", checked)
	}
}

func TestZone_listsEveryChangeOfTheClock(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"UTC": true, "Asia/Gaza": true, "Asia/Seoul": true, "America/Sao_Paulo": true}
	for _, c := range oddChanges {
		names[c.zone] = true
	}
	for name := range names {
		z := mustZone(t, name)
		for i := 2; i < len(z.starts); i++ {
			// No wall-clock time comes three times, and no gap meets an overlap, while
			// changes are this far apart. The policies at one change rest on it.
			if z.starts[i]-z.starts[i-1] < 5*daySeconds {
				t.Errorf("%s changes twice within five days, at %v", name, time.Unix(z.starts[i], 0).UTC())
			}
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for range 3000 {
			at := rng.Int64N(maxMilli / 1000)
			s := z.at(at)
			if at < s.start || at >= s.end {
				t.Fatalf("%s: %d is not in its span %+v", name, at, s)
			}
			for _, probe := range []struct{ at, want int64 }{
				{at, s.offset}, {max(s.start, 0), s.offset}, {s.start - 1, s.before}, {s.end - 1, s.offset}, {s.end, s.to},
			} {
				if probe.at < 0 || probe.at > maxMilli/1000 {
					continue
				}
				if _, got := time.Unix(probe.at, 0).In(z.loc).Zone(); int64(got) != probe.want {
					t.Fatalf("%s: offset at %v is %d, the span of %v says %d: %+v", name,
						time.Unix(probe.at, 0).UTC(), got, time.Unix(at, 0).UTC(), probe.want, s)
				}
			}
		}
	}
}
