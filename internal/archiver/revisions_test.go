package archiver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// says changes a schedule so often.
func (w *world) says(name string, times int) {
	w.Helper()
	for range times {
		st, err := w.q.Schedule(w.Context(), name)
		w.must(err)
		w.next++
		_, moved, err := w.q.Change(w.Context(), 0, []queue.Change{{Name: name, Expect: st.Last, Definition: fmt.Sprint(w.next), Event: "schedule changed"}})
		w.must(err)
		if len(moved) > 0 {
			w.Fatalf("another changed %s", name)
		}
	}
}

// revisions waits until the newest revision of a schedule is archived, and returns how many there are.
func (w *world) revisions(a archive.Archive, name string) (n int) {
	w.Helper()
	noted, err := w.q.Revisions(w.Context(), name)
	w.must(err)
	testredis.Eventually(w, patience, func() bool {
		list, err := a.Revisions(w.Context(), name, 0, 1000)
		n = len(list)
		return err == nil && n > 0 && list[0].Number == noted[0].Number
	}, "the revisions of %s are archived", name)
	return n
}

// Redis keeps 50 revisions of a schedule. Revisions that it drops before they are archived are a loss. Revisions of another schedule
// and archived ones are no loss.
func TestArchiver_tellsWhichRevisionsItMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	losses := func(want int) []archive.Loss {
		t.Helper()
		list, err := a.Lost(t.Context(), time.Time{})
		if err != nil || len(list) != want {
			t.Fatalf("%+v, %v; want %d", list, err, want)
		}
		return list
	}
	w.says("many", 60) // before there was an archive
	stop := w.follow("a")
	if n := w.revisions(a, "many"); n != 50 {
		t.Errorf("%d are archived", n)
	}
	stop()
	w.says("many", 50) // as many as Redis keeps
	stop = w.follow("b")
	if n := w.revisions(a, "many"); n != 100 {
		t.Errorf("%d are archived", n)
	}
	losses(0)
	stop()
	before := w.now()
	w.says("few", 50)
	w.says("many", 51)
	w.follow("c")
	if few, many := w.revisions(a, "few"), w.revisions(a, "many"); few != 50 || many != 150 {
		t.Errorf("%d and %d are archived", few, many)
	}
	if l := losses(1)[0]; l.Stream != "revisions" || l.From.After(l.To) || l.To.Before(before) {
		t.Errorf("%+v", l)
	}
	w.says("many", 1)
	w.revisions(a, "many")
	losses(1)
	testredis.Eventually(t, patience, func() bool {
		events, err := w.q.Events(t.Context(), before, 1000)
		_, lost := w.told.now()
		n := 0
		for _, e := range events {
			if e.Kind == "archive lost" && e.Fields["stream"] == "revisions" {
				n++
			}
		}
		return err == nil && n == 1 && lost == 1
	}, "an event and the observer tell")
}

// After a failover all schedules are read anew, a page at a time. Their archived revisions that Redis has dropped are no loss.
func TestArchiver_readsRevisionsAnewWithoutALoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	for i := range 100 { // a page
		w.says(fmt.Sprint("few", i), 1)
	}
	stop := w.follow("a")
	for range 2 {
		w.says("many", 40)
		w.revisions(a, "many")
	}
	want := w.note(20)
	w.eventually(a, want)
	stop()
	before, err := a.Position(t.Context())
	w.must(err)
	w.must(w.rdb.XDel(t.Context(), w.keys.History, want[10:]...).Err())
	want = append(want, w.note(1)...)
	w.follow("b")
	w.eventually(a, want)
	testredis.Eventually(t, patience, func() bool {
		at, err := a.Position(t.Context())
		return err == nil && at.Schedules == before.Schedules
	}, "all schedules were read anew")
	if list, err := a.Lost(t.Context(), time.Time{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The tables are gone, and with them revisions that Redis has dropped since.
func TestArchiver_tellsWhichRevisionsWentWithTheTables(t *testing.T) {
	t.Parallel()
	url := sqlite(t)
	w := newWorld(t, testredis.Real(t), url, queue.Caps{})
	a := w.archive()
	w.follow("a")
	for range 2 {
		w.says("many", 40)
		w.revisions(a, "many")
	}
	w.empty(url)
	w.says("many", 1)
	w.revisions(a, "many")
	list, err := a.Lost(t.Context(), time.Time{})
	if err != nil || len(list) != 1 || list[0].Stream != "revisions" {
		t.Errorf("%+v, %v", list, err)
	}
}

// now is the clock of Redis.
func (w *world) now() time.Time {
	w.Helper()
	at, err := w.q.Now(w.Context())
	w.must(err)
	return at
}
