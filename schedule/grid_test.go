package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/oracle"
)

func TestGrid_everySlotIsAnchorPlusIntervals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(1, MaxDuration.Milliseconds()).Draw(t, "every")
		if rapid.Bool().Draw(t, "short") {
			every = 1 + every%100_000
		}
		anchor := rapid.Int64Range(0, maxMilli).Draw(t, "anchor")
		at := rapid.Int64Range(-1e15, 1e15).Draw(t, "at")
		g, err := Every(time.Duration(every) * time.Millisecond).Grid(time.UnixMilli(anchor))
		if err != nil {
			t.Fatal(err)
		}
		next, prev := g.Next(time.UnixMilli(at)), g.Prev(time.UnixMilli(at))
		if next.IsZero() != (max(anchor, at+1) > lastSlot(anchor, every)) {
			t.Fatalf("Next = %v", next)
		}
		if prev.IsZero() != (at <= anchor) {
			t.Fatalf("Prev = %v", prev)
		}
		for _, slot := range []time.Time{next, prev} {
			if slot.IsZero() {
				continue
			}
			k, ok := g.Index(slot)
			if !ok || anchor+k*every != slot.UnixMilli() {
				t.Fatalf("slot %v has index %d, %v", slot, k, ok)
			}
		}
		if !next.IsZero() && (next.UnixMilli() <= at || next.UnixMilli()-every > at && next.UnixMilli() != anchor) {
			t.Fatalf("Next = %d ms after", next.UnixMilli()-at)
		}
		if !prev.IsZero() && (prev.UnixMilli() >= at || prev.UnixMilli()+every < at && prev.UnixMilli() != lastSlot(anchor, every)) {
			t.Fatalf("Prev = %d ms before", at-prev.UnixMilli())
		}
	})
}

func lastSlot(anchor, every int64) int64 { return anchor + (maxMilli-anchor)/every*every }

// TestGrid_laws checks the laws of a grid for all rules.
func TestGrid_laws(t *testing.T) {
	t.Parallel()
	zones := []string{"", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Seoul", "America/St_Johns"}
	rapid.Check(t, func(t *rapid.T) {
		var r Rule
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			r = Every(time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "every")) * time.Millisecond)
		} else {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			n := oracle.Random(rng, oracle.Shape{Seconds: rng.IntN(2) == 0, Specials: rng.IntN(2) == 0, Busy: rng.IntN(2) == 0})
			r = cronIn(n.Text, rapid.SampledFrom(zones).Draw(t, "zone"))
			r.DST.Gap = rapid.SampledFrom([]GapPolicy{"", DSTGapSkip, DSTGapAfter}).Draw(t, "gap")
			r.DST.Overlap = rapid.SampledFrom([]OverlapPolicy{"", DSTOverlapFirst, DSTOverlapSecond, DSTOverlapBoth}).Draw(t, "overlap")
		}
		const century = 3_155_760_000_000
		anchor := rapid.Int64Range(0, 2*century).Draw(t, "anchor")
		r.Until = time.UnixMilli(anchor + rapid.Int64Range(0, century).Draw(t, "length"))
		g, err := r.Grid(time.UnixMilli(anchor))
		if err != nil {
			t.Skip("an impossible expression")
		}
		at := time.UnixMilli(anchor + rapid.Int64Range(-century/10, century).Draw(t, "at"))
		var slots []time.Time
		for s := at; len(slots) < 20; {
			if s = g.Next(s); s.IsZero() {
				break
			}
			slots = append(slots, s)
		}
		before := at
		for _, s := range slots {
			if !s.After(before) || s.UnixMilli() < anchor || s.After(r.Until) {
				t.Fatalf("%s: slot %v after %v", Describe(r), s, before)
			}
			if p := g.Prev(s.Add(1)); !p.Equal(s) {
				t.Fatalf("%s: Prev just after %v is %v", Describe(r), s, p)
			}
			if p := g.Prev(s); before != at && !p.Equal(before) {
				t.Fatalf("%s: Prev(%v) is %v, want %v", Describe(r), s, p, before)
			}
			if n := g.Next(s.Add(-1)); !n.Equal(s) {
				t.Fatalf("%s: Next just before %v is %v", Describe(r), s, n)
			}
			before = s
		}
		i := 0
		for s := range g.Between(at, before) {
			if i >= len(slots) || !s.Equal(slots[i]) {
				t.Fatalf("%s: Between yields %v at %d, want %v", Describe(r), s, i, slots)
			}
			i++
		}
		if n := g.Count(at, before); i != len(slots) || n != int64(i) {
			t.Fatalf("%s: %d slots by Next, %d by Between, %d by Count", Describe(r), len(slots), i, n)
		}
		mid := at.Add(before.Sub(at) / 2)
		if a, b := g.Count(at, mid), g.Count(mid, before); a+b != int64(i) {
			t.Fatalf("%s: counts %d and %d do not add up to %d", Describe(r), a, b, i)
		}
	})
}

func TestGrid_bounds(t *testing.T) {
	t.Parallel()
	anchor := ts("2026-01-01T12:00:00.000Z")
	for _, r := range []Rule{Every(time.Hour), Cron("0 * * * *", nil)} {
		r.Until = ts("2026-01-01 15:00")
		g := mustGrid(t, r, anchor)
		for _, test := range []struct{ name, got, want string }{
			{"the anchor is the first slot", show(g.Next(time.Time{})), "2026-01-01 12:00"},
			{"Next is strict", show(g.Next(anchor)), "2026-01-01 13:00"},
			{"below a millisecond", show(g.Next(anchor.Add(-1))), "2026-01-01 12:00"},
			{"Prev too", show(g.Prev(anchor.Add(1))), "2026-01-01 12:00"},
			{"nothing before the anchor", show(g.Prev(anchor)), ""},
			{"until is inclusive", show(g.Next(ts("2026-01-01 14:59"))), "2026-01-01 15:00"},
			{"nothing after it", show(g.Next(ts("2026-01-01 15:00"))), ""},
			{"its last slot", show(g.Prev(ts("9999-01-01"))), "2026-01-01 15:00"},
			{"its last slot from beyond time", show(g.Prev(time.Unix(math.MaxInt64/4, 0))), "2026-01-01 15:00"},
			{"and its first", show(g.Next(time.Unix(math.MinInt64/4, 0))), "2026-01-01 12:00"},
		} {
			if test.got != test.want {
				t.Errorf("%s: %s: got %q, want %q", Describe(r), test.name, test.got, test.want)
			}
		}
		if n := g.Count(time.Time{}, ts("9999-12-31")); n != 4 {
			t.Errorf("%s: %d slots in all, want 4", Describe(r), n)
		}
		if n := g.Count(ts("2027-01-01"), ts("2026-01-01")); n != 0 {
			t.Errorf("%s: %d slots in a span that runs backwards", Describe(r), n)
		}
		for range g.Between(time.Time{}, ts("9999-12-31")) {
			break // may stop early
		}
	}
}

func show(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04")
}

func TestGrid_endsWithTheYear9999(t *testing.T) {
	t.Parallel()
	for _, r := range []Rule{Every(time.Hour), Cron("0 0 1 1 *", nil), cronIn("0 0 1 1 *", "Pacific/Apia"), cronIn("0 0 1 1 *", "America/Los_Angeles"), Every(MaxDuration)} {
		g := mustGrid(t, r, ts("1970-01-01"))
		if got := g.Next(ts("9999-12-31T23:59:59Z")); !got.IsZero() {
			t.Errorf("%s: a slot at %v", Describe(r), got)
		}
		if got := g.Prev(ts("9999-12-31T23:59:59Z")); got.Year() < 9900 {
			t.Errorf("%s: the last slot is %v", Describe(r), got)
		}
		if got := g.Prev(ts("1970-01-01")); !got.IsZero() {
			t.Errorf("%s: a slot at %v", Describe(r), got)
		}
	}
}

func TestGrid_anchors(t *testing.T) {
	t.Parallel()
	_, err := Every(time.Second).Grid(time.Time{})
	wantField(t, err, "anchor")
	for _, at := range []time.Time{time.Unix(-1, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err = Every(time.Second).Grid(at)
		wantField(t, err, "anchor")
	}
	for _, test := range []struct {
		rule Rule
		want string
	}{
		{Rule{Every: 7 * time.Hour, Start: StartAligned}, "1970-01-01 00:00"},
		{Rule{Every: 7 * time.Hour, Start: "2026-01-01T05:00:00Z"}, "2026-01-01 05:00"},
		{Rule{Cron: "@daily", Start: "2026-01-01T05:00:00Z"}, "2026-01-02 00:00"},
		{Rule{Cron: "@daily"}, "1970-01-01 00:00"},
	} {
		g := mustGrid(t, test.rule, time.Time{})
		if got := show(g.Next(time.Time{})); got != test.want {
			t.Errorf("%s begins at %s, want %s", Describe(test.rule), got, test.want)
		}
	}
	g := mustGrid(t, Every(time.Second), ts("2026-01-01T00:00:00.0009Z"))
	if got := g.Next(time.Time{}); !got.Equal(ts("2026-01-01")) {
		t.Errorf("an anchor finer than a millisecond gives %v", got)
	}
}

func TestGrid_Index(t *testing.T) {
	t.Parallel()
	g := mustGrid(t, Every(time.Minute), ts("2026-01-01"))
	for s, want := range map[string]int64{
		"2026-01-01": 0, "2026-01-01 01:00": 60, "2025-12-31 23:59": -1, "2026-01-01 00:00:01": -1, "2026-01-01T00:01:00.0000001Z": -1,
	} {
		k, ok := g.Index(ts(s))
		if ok != (want >= 0) || ok && k != want {
			t.Errorf("%s: got %d, %v, want %d", s, k, ok, want)
		}
	}
	if _, ok := mustGrid(t, Cron("@daily", nil), ts("2026-01-01")).Index(ts("2026-01-01")); ok {
		t.Error("a cron slot has an index")
	}
}

func TestGrid_zeroHasNoSlots(t *testing.T) {
	t.Parallel()
	var g Grid
	at := ts("2026-01-01")
	if !g.Next(at).IsZero() || !g.Prev(at).IsZero() || g.Count(time.Time{}, at) != 0 {
		t.Error("the zero Grid has slots")
	}
	for s := range g.Between(time.Time{}, at) {
		t.Errorf("the zero Grid has a slot at %v", s)
	}
}

func TestGrid_gapIsTheCadenceAround(t *testing.T) {
	t.Parallel()
	day := time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		rule Rule
		at   time.Time
		want time.Duration
	}{
		"between":          {Every(time.Minute), day.Add(90 * time.Second), time.Minute},
		"on a slot":        {Every(time.Minute), day.Add(2 * time.Minute), time.Minute},
		"before the first": {Every(time.Minute), day.Add(-time.Hour), time.Minute},
		"in the night":     {Cron("0 9-17 * * *", nil), day.Add(20 * time.Hour), 16 * time.Hour},
		"in the morning":   {Cron("0 9-17 * * *", nil), day.Add(24*time.Hour + 9*time.Hour + time.Minute), 16 * time.Hour},
		"ended":            {Rule{Every: time.Minute, Until: day.Add(time.Hour)}, day.Add(2 * time.Hour), 0},
	} {
		g, err := c.rule.Grid(day)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Gap(c.at); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
