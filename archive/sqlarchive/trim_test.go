package sqlarchive_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
)

const day = 24 * time.Hour

func keeping(d time.Duration) func(*opening) {
	return func(o *opening) { o.Keep = d }
}

func TestTrim_removesWhatIsOlderThanItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a, db := open(t, url, keeping(10*day)), raw(t, url)
		must(t, a.Trim(t.Context(), now)) // nothing was archived yet
		if since, err := a.Since(t.Context()); err != nil || time.Since(since) > time.Minute {
			t.Fatalf("an empty archive has everything since %v, %v", since, err)
		}
		old, young := now.Add(-30*day), now.Add(-5*day)
		b := batch(archive.Position{}, ran(old, 0, 1), ran(young, 0, 2))
		for i, at := range []time.Time{old, young} {
			missed := ran(at, 1, 1)
			missed.Notes[0].TaskID, missed.Notes[0].From, missed.Notes[0].To = "", at, at
			b.Entries = append(b.Entries, missed)
			b.Events = append(b.Events, archive.Event{ID: idOf(at, 0), At: at, Kind: "joined", Fields: map[string]string{"n": "1"}})
			b.Losses = append(b.Losses, archive.Loss{From: at, To: at.Add(time.Second), Entries: int64(i)})
		}
		for i, r := range []archive.Revision{
			{Schedule: "changed", At: old, Definition: "first"}, {Schedule: "changed", At: old.Add(day), Definition: "in force at the edge"},
			{Schedule: "changed", At: young, Definition: "newest"}, {Schedule: "gone", At: old, Definition: "once"}, {Schedule: "gone", At: old.Add(day)},
			{Schedule: "same", At: old, Definition: "ever since"},
		} {
			r.Number, r.What = int64(i+1), "changed"
			b.Revisions = append(b.Revisions, r)
		}
		must(t, a.Add(t.Context(), archive.Position{}, b))
		if since, err := a.Since(t.Context()); err != nil || !since.IsZero() {
			t.Errorf("untrimmed, it has everything since %v, %v", since, err)
		}
		must(t, a.Trim(t.Context(), now))
		must(t, a.Trim(t.Context(), now.Add(-time.Hour))) // a clock behind takes nothing back
		if since, err := a.Since(t.Context()); err != nil || !since.Equal(now.Add(-10*day)) {
			t.Errorf("it has everything since %v, %v", since, err)
		}
		for _, table := range []string{"onbeat_runs", "onbeat_fates", "onbeat_events", "onbeat_losses"} {
			if n := number(t, db, "select count(*) from "+table); n != 1 {
				t.Errorf("%s has %d rows, want the young one", table, n)
			}
		}
		if list := all(t, a); len(list) != 2 || !list[0].At.Equal(young) {
			t.Errorf("history %+v", list)
		}
		for schedule, want := range map[string][]string{"changed": {"newest", "in force at the edge"}, "gone": nil, "same": {"ever since"}} {
			list, err := a.Revisions(t.Context(), schedule, 0, 0)
			must(t, err)
			var got []string
			for _, r := range list {
				got = append(got, r.Definition)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", schedule, got, want)
			}
		}
	})
}

// More rows than one step removes.
func TestTrim_endsWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url, keeping(day))
		old := ran(now.Add(-40*day), 0)
		for i := range 2500 {
			old.Notes = append(old.Notes, ran(old.At, 0, i).Notes...)
		}
		add(t, a, old, ran(now, 0, 1)) // all of one moment, and one that stays
		must(t, a.Trim(t.Context(), now))
		if n := number(t, raw(t, url), "select count(*) from onbeat_runs"); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

// Two namespaces share the days of a table; each keeps its own time.
func TestTrim_leavesTheRowsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url, keeping(day))
		b := open(t, url, keeping(60*day), func(o *opening) { o.namespace = "other" })
		at := now.Add(-20 * day)
		for _, one := range []archive.Archive{a, b} {
			missed := ran(at, 1, 1)
			missed.Notes[0].TaskID, missed.Notes[0].From, missed.Notes[0].To = "", at, at
			all := batch(archive.Position{}, ran(at, 0, 1), missed)
			all.Events = []archive.Event{{ID: idOf(at, 0), At: at, Kind: "joined"}}
			all.Losses = []archive.Loss{{From: at, To: at, Entries: 1}}
			all.Revisions = []archive.Revision{{Schedule: "gone", Number: 1, At: at}}
			must(t, one.Add(t.Context(), archive.Position{}, all))
		}
		must(t, a.Trim(t.Context(), now))
		if since, err := b.Since(t.Context()); err != nil || !since.IsZero() {
			t.Errorf("the other has everything since %v, %v", since, err)
		}
		must(t, b.Trim(t.Context(), now))
		db := raw(t, url)
		for _, table := range []string{"onbeat_runs", "onbeat_fates", "onbeat_events", "onbeat_losses", "onbeat_revisions"} {
			for namespace, want := range map[string]int64{"test": 0, "other": 1} {
				if n := number(t, db, "select count(*) from "+table+" where namespace = $1", namespace); n != want {
					t.Errorf("%s has %d rows of %s, want %d", table, n, namespace, want)
				}
			}
		}
	})
}

func partitions(t *testing.T, url string) (names []string) {
	t.Helper()
	rows, err := raw(t, url).Query("select inhrelid::regclass::text from pg_inherits where inhparent = 'onbeat_runs'::regclass order by 1")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		names = append(names, name)
	}
	must(t, rows.Err())
	return names
}

func nameOf(at time.Time) string { return "onbeat_runs_" + at.UTC().Format("20060102") }

func TestTrim_makesPartitionsAheadAndDropsOldOnes(t *testing.T) {
	t.Parallel()
	url := postgres(t)
	a := open(t, url, keeping(10*day))
	old, edge := now.Add(-13*day), now.Add(-12*day)
	add(t, a, ran(old, 0, 1), ran(edge, 0, 2), ran(now, 0, 3))
	for _, at := range []time.Time{old, edge, now} {
		if !slices.Contains(partitions(t, url), nameOf(at)) {
			t.Errorf("no partition for the rows of %v: %v", at, partitions(t, url))
		}
	}
	must(t, a.Trim(t.Context(), now))
	must(t, a.Trim(t.Context(), now.Add(2*day)))
	left := partitions(t, url)
	for at, want := range map[time.Time]bool{old: false, edge: false, now: true, now.Add(9 * day): true, now.Add(10 * day): false} {
		if slices.Contains(left, nameOf(at)) != want {
			t.Errorf("partition %s: %v, want %v", nameOf(at), !want, want)
		}
	}
}

// Another program wrote any times into Redis: they make no partitions without end.
func TestAdd_ofRowsOfFarDaysMakesNoPartitions(t *testing.T) {
	t.Parallel()
	url := postgres(t)
	a := open(t, url)
	add(t, a, ran(time.Date(2999, 1, 1, 12, 0, 0, 0, time.UTC), 0, 1), ran(time.Date(1999, 1, 1, 12, 0, 0, 0, time.UTC), 0, 2))
	if names := partitions(t, url); len(names) != 1 || !strings.HasSuffix(names[0], "_default") {
		t.Errorf("partitions %v", names)
	}
	if n := len(all(t, a)); n != 2 {
		t.Errorf("%d entries", n)
	}
	must(t, a.Trim(t.Context(), now))
	if n := len(all(t, a)); n != 1 {
		t.Errorf("%d entries after the trim, want that of the future", n)
	}
}
