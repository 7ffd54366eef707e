package differential

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	netresearch "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"

	"github.com/onbeat/onbeat/internal/oracle"
	"github.com/onbeat/onbeat/schedule"
)

// The known differences.
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

func TestDifferential_robfigInUTC(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 1))
	parser := robfig.NewParser(robfigOptions)
	seen := map[string]int{}
	for range 6000 {
		n := oracle.Random(rng, oracle.Shape{Seconds: rng.IntN(2) == 0})
		theirs, err := parser.Parse(sixFields(n))
		if err != nil {
			t.Fatalf("robfig refuses %q: %v", n.Text, err)
		}
		ours, err := inUTC(n.Text)
		if err != nil {
			if got := theirs.Next(day0.AddDate(56, 0, 0)); !got.IsZero() && n.Matches(got) {
				t.Fatalf("%v, but robfig runs it at %v", err, got)
			}
			continue
		}
		spec := theirs.(*robfig.SpecSchedule)
		spec.Location = time.UTC
		domStar, dowStar := spec.Dom>>63 == 1, spec.Dow>>63 == 1
		theirWay := daysOf(t, strings.Fields(sixFields(n)))
		for range 4 {
			after := randomInstant(rng)
			got, want := ours.Next(after), spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			name := ""
			if domStar != isStar(n.Field[3]) || dowStar != isStar(n.Field[5]) {
				name, got = diffStar, theirWay.next(after, domStar || dowStar)
			}
			if want.IsZero() && got.After(after.AddDate(4, 11, 0)) {
				name, want = diffHorizon, got
			}
			if name == "" || !got.Equal(want) {
				t.Fatalf("%q after %v: got %v, robfig says %v", n.Text, after, got, want)
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
		n := oracle.Random(rng, oracle.Shape{Seconds: rng.IntN(2) == 0, Specials: true})
		ours, err := inUTC(n.Text)
		if err != nil {
			continue
		}
		// Theirs writes the last Friday 5#L, ours 5L.
		text := strings.Fields(sixFields(n))
		text[5] = strings.ReplaceAll(text[5], "L", "#L")
		spelled := strings.Join(text, " ")
		theirs, err := and.Parse(spelled)
		if err != nil && strings.Contains(spelled, "THU") {
			seen[diffHash]++
			theirs, err = and.Parse(strings.ToLower(spelled))
		}
		if err != nil {
			if !strings.Contains(err.Error(), "step") {
				t.Fatalf("netresearch refuses %q: %v", n.Text, err)
			}
			seen[diffStep]++
			continue
		}
		spec := theirs.(*netresearch.SpecSchedule)
		spec.Location = time.UTC
		known, fields := diffAnd, strings.Fields(sixFields(n))
		if uint8(spec.Dow&0x7f) != weekdays(n) {
			known = diffSunday
			fields[5] += ",0"
		}
		theirWay := daysOf(t, fields)
		for range 4 {
			after := randomInstant(rng)
			got, want := ours.Next(after), spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			name := known
			// A rewritten expression may be impossible: then both say never.
			got = theirWay.next(after, true)
			if want.IsZero() && (got.IsZero() || got.After(after.AddDate(4, 11, 0))) {
				name, want = diffHorizon, got
			}
			if !got.Equal(want) {
				t.Fatalf("%q after %v: got %v, netresearch says %v", n.Text, after, got, want)
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
		n := oracle.Random(rng, oracle.Shape{Busy: true})
		f := strings.Fields(n.Text)
		text := strings.Join([]string{f[0], f[1], "*", f[3], "*"}, " ")
		change := oracle.Changes[rng.IntN(len(oracle.Changes))]
		loc, err := time.LoadLocation(change.Zone)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := schedule.Rule{
			Cron: text, Timezone: change.Zone, DST: schedule.DST{Gap: schedule.DSTGapSkip, Overlap: schedule.DSTOverlapBoth},
		}.Grid(day0)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := inUTC(text)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := parser.Parse("0 " + text)
		if err != nil {
			t.Fatal(err)
		}
		spec := theirs.(*robfig.SpecSchedule)
		spec.Location = loc
		for range 4 {
			// Half of the instants lie near a change, where it is interesting.
			after := randomInstant(rng)
			if rng.IntN(2) == 0 {
				at, err := time.Parse(time.RFC3339, change.At)
				if err != nil {
					t.Fatal(err)
				}
				after = at.Add(time.Duration(rng.Int64N(int64(4*day))) - 2*day).Truncate(time.Second)
			}
			got, want := ours.Next(after), spec.Next(after)
			seen["compared"]++
			if got.Equal(want) {
				continue
			}
			if _, offset := after.In(loc).Zone(); offset%60 != 0 {
				seen[diffOddOffset]++
				continue
			}
			if !changesWithin(loc, after.Add(-32*day), latest(got, want).Add(day)) {
				t.Fatalf("%q %s after %v: got %v, robfig says %v, and no change of the clock is near",
					text, change.Zone, after, got, want)
			}
			w := want.In(loc)
			shown := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, time.UTC)
			if wall.Next(shown.Add(-1)).Equal(shown) && want.Before(got) && want.After(after) {
				t.Fatalf("%q %s after %v: robfig found %v, which matches, before %v", text, change.Zone, after, want, got)
			}
			seen[diffDST]++
		}
	}
	t.Log(seen)
	if seen["compared"] < 20000 {
		t.Errorf("too little was compared: %v", seen)
	}
}
