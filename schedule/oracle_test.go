package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/oracle"
)

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
func (k *walk) slots(n *oracle.Expr, dst DST) []int64 {
	var slots []int64
	for i, at := range k.at {
		if at <= k.from || at > k.to {
			continue
		}
		is := n.Matches(k.wall[i])
		switch w := k.wall[i].Unix(); {
		case dst.Overlap == DSTOverlapFirst && k.first[w] != at, dst.Overlap == DSTOverlapSecond && k.last[w] != at:
			is = false
		}
		if dst.Gap == DSTGapAfter {
			for w := k.wall[i-1].Add(k.step); w.Before(k.wall[i]); w = w.Add(k.step) {
				is = is || n.Matches(w)
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
	for _, change := range oracle.Changes {
		t.Run(change.Zone+" "+change.At, func(t *testing.T) {
			t.Parallel()
			loc, err := time.LoadLocation(change.Zone)
			if err != nil {
				t.Fatal(err)
			}
			at := ts(change.At)
			if s := mustZone(t, change.Zone).at(at.Unix()); s.start != at.Unix() || s.before == s.offset {
				t.Fatalf("%s: the clock does not change there: %+v", change.What, s)
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
				n := oracle.Random(rng, oracle.Shape{Seconds: fine, Busy: round%2 == 0})
				r := cronIn(n.Text, change.Zone)
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
		n := oracle.Random(rng, oracle.Shape{Specials: true})
		// Only the date matters here, so a step of a day is enough: midnight.
		zero := oracle.Field{Text: "0", Set: oracle.Steps(0, 0, 1)}
		n.Field[1], n.Field[2] = zero, zero
		r := Cron("0 0 "+n.Field[3].Text+" "+n.Field[4].Text+" "+n.Field[5].Text, nil)
		from := time.Date(1970+rng.IntN(500), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), 0, 0, 0, 0, time.UTC)
		to := from.AddDate(5, 0, 0)
		var want []int64
		for d := from.AddDate(0, 0, 1); !d.After(to); d = d.AddDate(0, 0, 1) {
			if n.Matches(d) {
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
	for _, c := range oracle.Changes {
		names[c.Zone] = true
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
