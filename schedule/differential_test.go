package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	netresearch "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
)

// The differential tests hold the package against two other evaluators. Where
// they differ, the difference has a name and a count here, and wherever it can be,
// the other's answer is derived from ours by changing that one thing.
const (
	// robfig/cron calls a day field with a step restricted, even */2, and a list
	// unrestricted if any item is a star. We look at the first character, as
	// Vixie's cron does, so that */2 narrows the other day field.
	diffStar = "robfig: another idea of which day field is a star"

	// Both give up after five years: 29 February around 2100, or on a Monday.
	diffHorizon = "both: nothing within five years"

	// netresearch/go-cron joins the two day fields with AND unless told otherwise.
	diffAnd = "netresearch: day fields joined with AND"

	// netresearch refuses steps that leave one value, such as 5-6/2 and */31.
	diffStep = "netresearch: step as long as its range refused"

	// netresearch takes the H of THU in capitals for its own hash syntax.
	diffHash = "netresearch: THU in capitals refused"

	// In netresearch, 5/2 on days of the week runs to 7, which is Sunday
	// again; we stop at Saturday, as * does.
	diffSunday = "netresearch: a step reaches the second name of Sunday"

	// robfig rounds to minutes since the epoch, not on the wall.
	diffOddOffset = "robfig: an offset that is not in whole minutes"

	// robfig gives a skipped time no slot, runs a repeated one at each pass unless
	// the clock changes at midnight, and loses or moves slots where a gap is not a
	// whole hour, also in the month after, since it counts from the start of the
	// month. Only answers with a change of the clock near may differ.
	diffDST = "daylight saving handled otherwise"
)

const robfigOptions = robfig.Second | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow

func withSeconds(n *naive) string {
	if strings.Count(n.text, " ") == 5 {
		return n.text
	}
	return "0 " + n.text
}

func randomInstant(rng *rand.Rand) time.Time {
	return time.UnixMilli(rng.Int64N(ts("2200-01-01").UnixMilli())).UTC()
}

// answer evaluates c in zone with no automatic policy, on behalf of another's rules.
func answer(c calendar, z *zone, dst DST, after time.Time) time.Time {
	g := cronGrid{c, z, dst}
	s := g.next(floorDiv(after.UnixMilli(), 1000)+1, maxMilli/1000)
	if s == never {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

func TestDifferential_robfigInUTC(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 1))
	parser := robfig.NewParser(robfigOptions)
	seen := map[string]int{}
	for range 6000 {
		n := randomExpr(rng, shape{seconds: rng.IntN(2) == 0})
		theirs, err := parser.Parse(withSeconds(n))
		if err != nil {
			t.Fatalf("robfig refuses %q: %v", n.text, err)
		}
		c, err := parseCron(n.text)
		if err != nil {
			if got := theirs.Next(ts("2026-01-01")); !got.IsZero() && n.matches(got) {
				t.Fatalf("%v, but robfig runs it at %v", err, got)
			}
			continue
		}
		z := mustZone(t, "")
		spec := theirs.(*robfig.SpecSchedule)
		spec.Location = time.UTC
		for range 4 {
			after := randomInstant(rng)
			got, want := answer(c, z, DST{}, after), spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			name := ""
			star := c
			star.domStar, star.dowStar = spec.Dom>>63 == 1, spec.Dow>>63 == 1
			if star != c {
				name, got = diffStar, answer(star, z, DST{}, after)
			}
			if want.IsZero() && got.After(after.AddDate(4, 11, 0)) {
				name, want = diffHorizon, got
			}
			if name == "" || !got.Equal(want) {
				t.Fatalf("%q after %v: got %v, robfig says %v", n.text, after, got, want)
			}
			seen[name]++
		}
	}
	t.Log(seen)
	if seen["compared"] < 20000 || seen[diffStar] == 0 {
		t.Errorf("too little was compared, or a named difference is gone: %v", seen)
	}
}

func TestDifferential_netresearchInUTC(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 1))
	const options = netresearch.Second | netresearch.Minute | netresearch.Hour | netresearch.Dom |
		netresearch.Month | netresearch.Dow | netresearch.Extended
	and := netresearch.MustNewParser(options)
	seen := map[string]int{}
	for range 6000 {
		n := randomExpr(rng, shape{seconds: rng.IntN(2) == 0, specials: true})
		c, err := parseCron(n.text)
		if err != nil {
			continue
		}
		// Theirs writes the last Friday 5#L, ours 5L.
		text := strings.Fields(withSeconds(n))
		text[5] = strings.ReplaceAll(text[5], "L", "#L")
		spelled := strings.Join(text, " ")
		theirs, err := and.Parse(spelled)
		if err != nil && strings.Contains(spelled, "THU") {
			seen[diffHash]++
			theirs, err = and.Parse(strings.ToLower(spelled))
		}
		if err != nil {
			if !strings.Contains(err.Error(), "step") {
				t.Fatalf("netresearch refuses %q: %v", n.text, err)
			}
			seen[diffStep]++
			continue
		}
		spec := theirs.(*netresearch.SpecSchedule)
		spec.Location = time.UTC
		sunday := uint8(spec.Dow&0x7f) != c.dow
		for range 4 {
			after := randomInstant(rng)
			got, want := answer(c, mustZone(t, ""), DST{}, after), spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			name, theirWay := diffAnd, c
			theirWay.domStar = true
			if sunday {
				name = diffSunday
				theirWay.dow |= 1
			}
			// A rewritten expression may be impossible: then both say never.
			got = answer(theirWay, mustZone(t, ""), DST{}, after)
			if want.IsZero() && (got.IsZero() || got.After(after.AddDate(4, 11, 0))) {
				name, want = diffHorizon, got
			}
			if !got.Equal(want) {
				t.Fatalf("%q after %v: got %v, netresearch says %v", n.text, after, got, want)
			}
			seen[name]++
		}
	}
	t.Log(seen)
	if seen["compared"] < 10000 || seen[diffAnd] == 0 || seen[diffStep] == 0 || seen[diffHash] == 0 || seen[diffSunday] == 0 {
		t.Errorf("too little was compared, or a named difference is gone: %v", seen)
	}
}

func TestDifferential_robfigAcrossZones(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 1))
	parser := robfig.NewParser(robfigOptions)
	seen := map[string]int{}
	for range 6000 {
		// No steps or lists in the day fields: those differences are counted above.
		n := randomExpr(rng, shape{busy: true})
		f := strings.Fields(n.text)
		text := strings.Join([]string{f[0], f[1], "*", f[3], "*"}, " ")
		c, err := parseCron(text)
		if err != nil {
			t.Fatal(err)
		}
		change := oddChanges[rng.IntN(len(oddChanges))]
		z := mustZone(t, change.zone)
		theirs, err := parser.Parse("0 " + text)
		if err != nil {
			t.Fatal(err)
		}
		spec := theirs.(*robfig.SpecSchedule)
		spec.Location = z.loc
		for range 4 {
			// Half of the instants lie near a change, where it is interesting.
			after := randomInstant(rng)
			if rng.IntN(2) == 0 {
				after = ts(change.at).Add(time.Duration(rng.Int64N(int64(4*day))) - 2*day).Truncate(time.Second)
			}
			got := answer(c, z, DST{DSTGapSkip, DSTOverlapBoth}, after)
			want := spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			if z.at(after.Unix()).offset%60 != 0 {
				seen[diffOddOffset]++
				continue
			}
			if !changesWithin(z, after.Add(-32*day), latest(got, want).Add(day)) {
				t.Fatalf("%q %s after %v: got %v, robfig says %v, and no change of the clock is near",
					text, change.zone, after, got, want)
			}
			if w := want.In(z.loc); c.matches(time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, time.UTC).Unix()) &&
				want.Before(got) && want.After(after) {
				t.Fatalf("%q %s after %v: robfig found %v, which matches, before %v", text, change.zone, after, want, got)
			}
			seen[diffDST]++
		}
	}
	t.Log(seen)
	if seen["compared"] < 20000 {
		t.Errorf("too little was compared: %v", seen)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func changesWithin(z *zone, from, to time.Time) bool {
	s := z.at(from.Unix())
	return s.end <= to.Unix()
}
