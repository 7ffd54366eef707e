package onbeat_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// All instances and all of Redis are gone. Applied and declared schedules come back from the archive, as they were; a deleted one does not.
func TestRegain_bringsBackWhatOnlyTheArchiveKnows(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newLossy(t, url)
		ctx := t.Context()
		d, stop := w.start()
		w.apply(d, "fast", schedule.Rule{Every: 200 * time.Millisecond, Missed: schedule.MissedAll}) // so that a busy machine misses none
		w.apply(d, "nightly", schedule.Rule{Cron: "0 3 * * *", Timezone: "Asia/Seoul"})
		w.apply(d, "resting", schedule.Every(time.Minute))
		w.apply(d, "gone", schedule.Every(time.Minute))
		a := w.open()
		w.archived(a, "gone", there)
		w.has(d, "mine") // a declared schedule may come after the applied ones
		for _, name := range []string{"resting", "mine"} {
			_, err := d.Admin().Schedules.Pause(admin.By(ctx, "ann@host"), name, "the supplier moves")
			must(t, err)
		}
		_, err := d.Admin().Schedules.Delete(ctx, "gone")
		must(t, err)
		w.archived(a, "gone", func(s *archive.Schedule) bool { return s == nil })
		for _, name := range []string{"resting", "mine"} {
			w.archived(a, name, func(s *archive.Schedule) bool { return s != nil && s.Pause != "" })
		}
		w.archived(a, "thrice", there)
		before := map[string]admin.ScheduleDetail{}
		for _, name := range []string{"fast", "nightly", "resting", "mine", "thrice"} {
			before[name] = w.get(d, name)
		}
		done := map[int64]bool{}
		testredis.Eventually(t, patience, func() bool {
			must(t, a.HistoryOf(ctx, "fast", time.Time{}, func(e history.Entry) error {
				for i := range e.Notes {
					done[e.Notes[i].Slot.UnixMilli()] = true
				}
				return nil
			}))
			return len(done) > 20
		}, "runs are archived")
		w.mu.Lock()
		if w.thrice != 3 { // the archived runs of fast came later
			t.Errorf("it ran %d times", w.thrice)
		}
		w.mu.Unlock()
		stop()
		w.empty()
		var judged map[string]*audit.Report // nobody has restored anything yet
		testredis.Eventually(t, patience, func() bool {
			judged = w.audit(d)
			return judged["fast"] != nil && judged["fast"].Unattended
		}, "the archive tells which slots are overdue")
		if r := judged["fast"]; len(judged) != 6 || r.Broken() || r.Counts[audit.OnTime]+r.Counts[audit.Late] < int64(len(done)) {
			t.Errorf("%d are judged, with the one that was deleted, and fast: %+v", len(judged), r)
		}
		if r := judged["thrice"]; r == nil || !r.OK() || r.Slots != 3 {
			t.Errorf("thrice has ended: %+v", r)
		}

		d, stop = w.start()
		w.settled(d)
		for name, was := range before {
			s := w.get(d, name)
			if !s.Anchor.Equal(was.Anchor) || s.Origin != was.Origin || s.Paused != was.Paused || s.Rule != was.Rule {
				t.Errorf("%s is %+v, and was %+v", name, s, was)
			}
		}
		for _, name := range []string{"resting", "mine"} {
			if p := w.get(d, name).Pause; p == nil || *p != *before[name].Pause {
				t.Errorf("%s is paused: %+v, and was: %+v", name, p, before[name].Pause)
			}
		}
		if s := w.get(d, "thrice"); s.Runs != 3 || !s.Next.IsZero() {
			t.Errorf("it has run 3 times of 3, and is %+v", s)
		}
		if s := w.get(d, "fast"); s.Runs < int64(len(done)) {
			t.Errorf("%d runs are known, and %d are archived", s.Runs, len(done))
		}
		if _, err := d.Admin().Schedules.Get(ctx, "gone"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("deleted: %v", err)
		}
		if list, err := d.Admin().Schedules.Revisions(ctx, "nightly", 1, ""); err != nil || list.Items[0].What != "restored" || list.Items[0].By != "onbeat.archive" {
			t.Errorf("%+v, %v", list, err)
		}
		if text := w.troubles(d); !strings.Contains(text, "5 schedules") || !strings.Contains(text, "mine, thrice, fast, nightly, resting") {
			t.Errorf("the status says %q", text)
		}
		last := w.get(d, "fast").Last
		testredis.Eventually(t, patience, func() bool { return w.get(d, "fast").Runs > 0 && w.get(d, "fast").Last.After(last.Add(time.Second)) }, "it goes on")
		w.mu.Lock()
		if w.thrice != 3 {
			t.Errorf("what may run 3 times ran %d times", w.thrice)
		}
		for slot, times := range w.ran {
			if off := (slot - before["fast"].Anchor.UnixMilli()) % 200; off != 0 || done[slot] && times != 1 {
				t.Errorf("slot %d ran %d times, %d ms off the grid", slot, times, off)
			}
		}
		w.mu.Unlock()
		judged = w.audit(d)
		if r := judged["fast"]; r.Broken() || r.Counts[audit.OnTime]+r.Counts[audit.Late] <= int64(len(done)) {
			t.Errorf("fast: %+v", r)
		}
		if r := judged["thrice"]; !r.OK() || r.Slots != 3 {
			t.Errorf("thrice has ended: %+v", r)
		}

		// The leader died before it had restored all, and before it noted that it had.
		revision := w.get(d, "fast").Revision
		stop()
		k := d.Queue().Keys()
		must(t, errors.Join(w.rdb.HDel(ctx, k.Schedules, "nightly").Err(), w.rdb.HDel(ctx, k.Last, "nightly").Err(),
			w.rdb.ZRem(ctx, k.Changed, "nightly").Err(), w.rdb.HDel(ctx, k.Meta, "regained").Err()))
		d, stop = w.start()
		w.has(d, "nightly")
		w.settled(d)
		if s := w.get(d, "fast"); s.Revision != revision {
			t.Errorf("fast was changed from revision %d to %d", revision, s.Revision)
		}

		// The leader looks into the archive once for each loss.
		stop()
		must(t, errors.Join(w.rdb.HDel(ctx, k.Schedules, "nightly").Err(), w.rdb.HDel(ctx, k.Last, "nightly").Err(), w.rdb.ZRem(ctx, k.Changed, "nightly").Err()))
		d, _ = w.start()
		last = w.get(d, "fast").Last
		testredis.Eventually(t, patience, func() bool { return w.get(d, "fast").Last.After(last.Add(2 * time.Second)) }, "the next leader has led for a while")
		if _, err := d.Admin().Schedules.Get(ctx, "nightly"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("restored though Redis was not empty: %v", err)
		}
	})
}

// A job that was dead before Redis came back empty is not well after it, also if no run of it ends for hours.
func TestRegain_knowsWhatFailed(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newLossy(t, url)
		ctx := t.Context()
		d, stop := w.start()
		s := onbeat.Schedule{Name: "doomed", Rule: schedule.Rule{Every: 24 * time.Hour}, Task: "fails"}
		s.MaxAttempts = 1
		_, err := d.Admin().Schedules.Apply(ctx, s)
		must(t, err)
		failing := func(of string) {
			t.Helper()
			testredis.Eventually(t, patience, func() error {
				s := w.get(d, "doomed")
				if s.Condition.Health != admin.Failing || !strings.Contains(s.Condition.Why, "out of ink") {
					return fmt.Errorf("%s: %+v", of, s.Condition)
				}
				return nil
			}, "it is failing")
		}
		failing("before")
		a := w.open()
		testredis.Eventually(t, patience, func() (found bool) {
			must(t, a.HistoryOf(ctx, "doomed", time.Time{}, func(e history.Entry) error {
				found = found || e.Notes[0].Word == history.Dead
				return nil
			}))
			return found
		}, "its death is archived")
		w.archived(a, "doomed", there)
		w.empty() // the leader remembers the schedule, and not how it was
		testredis.Eventually(t, patience, func() bool { _, err := d.Admin().Schedules.Get(ctx, "doomed"); return err == nil }, "it is back")
		failing("with a leader that remembers")
		stop()
		w.empty()
		d, _ = w.start()
		w.has(d, "doomed")
		failing("with nobody who remembers")
	})
}

// The archive is away when Redis comes back empty. The beat of the release goes on, but the status does not call all well.
// Changes that somebody makes meanwhile count more than the archive.
func TestRegain_waitsForAnArchiveThatIsAway(t *testing.T) {
	t.Parallel()
	server := testpostgres.Private(t)
	w := newLossy(t, server.Database())
	ctx := t.Context()
	w.enc.Keys = []task.EncryptionKey{keyOf("k1")}
	d, stop := w.start()
	for _, name := range []string{"a", "theirs", "undone"} {
		w.apply(d, name, schedule.Every(time.Minute))
	}
	_, err := d.Admin().Schedules.Apply(ctx, onbeat.Schedule{Name: "sealed", Rule: schedule.Every(time.Hour), Task: "job", Payload: []byte(`"a secret"`)})
	must(t, err)
	w.archived(w.open(), "sealed", there)
	was := w.get(d, "a")
	stop()
	w.empty()
	server.Kill()

	w.enc.Keys = nil
	d, _ = w.start()
	w.has(d, "mine")
	w.apply(d, "theirs", schedule.Every(time.Hour))
	w.apply(d, "undone", schedule.Every(time.Hour))
	_, err = d.Admin().Schedules.Delete(ctx, "undone")
	must(t, err)
	if s, err := d.Admin().Activity.Status(ctx); err != nil || s.Well || len(s.CouldNotAsk) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	server.Start()
	w.settled(d)
	if s := w.get(d, "a"); !s.Anchor.Equal(was.Anchor) {
		t.Errorf("%v, and was %v", s.Anchor, was.Anchor)
	}
	if s := w.get(d, "theirs"); s.Every != time.Hour {
		t.Errorf("another applied it meanwhile, and it is every %v", s.Every)
	}
	if _, err := d.Admin().Schedules.Get(ctx, "undone"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("deleted meanwhile: %v", err)
	}
	if s := w.get(d, "sealed"); s.Encrypted == "" || len(s.Payload) > 0 {
		t.Errorf("without its key it has the payload %q", s.Payload)
	}
	if text := w.troubles(d); !strings.Contains(text, "2 schedules,") {
		t.Errorf("the status says %q", text)
	}
}

// Somebody who writes to the archive cannot make an instance run a task of the dispatcher's own by that.
func TestRegain_refusesWhatNobodyCouldApply(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "archive.db")
	w := newLossy(t, "sqlite://"+path)
	d, stop := w.start()
	w.apply(d, "forged", schedule.Every(time.Minute))
	w.apply(d, "good", schedule.Every(time.Minute))
	w.archived(w.open(), "good", there)
	stop()
	w.empty()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	done, err := db.ExecContext(t.Context(), `UPDATE onbeat_schedules SET definition = replace(definition, '"job"', '"onbeat.heartbeat"') WHERE schedule = 'forged'`)
	must(t, errors.Join(err, db.Close()))
	if n, err := done.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}

	d, _ = w.start()
	w.has(d, "good")
	testredis.Eventually(t, patience, func() bool { return strings.Contains(w.troubles(d), `"forged"`) }, "the status names it")
	if _, err := d.Admin().Schedules.Get(t.Context(), "forged"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("it is restored: %v", err)
	}
}
