package onbeat_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// archiving returns a dispatcher that beats often, and keeps little of its history in Redis.
func archiving(t *testing.T, rdb redis.UniversalClient, url, release string, c onbeat.Config) *onbeat.Dispatcher {
	t.Helper()
	c.Release, c.Lease, c.Caps.History = release, time.Second, 120
	c.Archive = sqlarchive.Config{URL: url}
	d := dispatcher(t, rdb, c)
	t.Cleanup(func() { must(t, d.Close()) })
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, tk *task.Task) error {
		handlers.Output(ctx, "did "+tk.ID)
		return nil
	})))
	must(t, d.Schedule("beat", schedule.Every(10*time.Millisecond), "job", nil))
	return d
}

// Entries that Redis no longer has are read in the archive: the audit finds each slot, the runs of a schedule go on from page to
// page, and a task that Redis has forgotten is known.
func TestArchive_hasWhatRedisHasDropped(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	url := "sqlite://" + filepath.Join(t.TempDir(), "archive.db")
	ctx := t.Context()
	d := archiving(t, rdb, url, "v1", onbeat.Config{})
	began := time.Now()
	stop := run(t, d)
	_, err := d.Enqueue(ctx, task.New("job", nil, task.ID("one")))
	must(t, err)
	testredis.Eventually(t, patience, func() error {
		_, err := d.Admin().Schedules.Trigger(ctx, "beat", nil)
		return err
	}, "the schedule is declared, and triggered")
	dropped := func() bool {
		since, err := d.Queue().HistorySince(ctx)
		return err == nil && since.After(began.Add(2*time.Second))
	}
	testredis.Eventually(t, patience, dropped, "Redis drops what is archived")
	stop()

	found, err := d.Admin().Activity.Audit(ctx, audit.Options{Since: time.Since(began)})
	must(t, err)
	r := &found.Schedules[0]
	if r.Counts[audit.Unknown] > 0 || r.Broken() || r.Counts[audit.OnTime]+r.Counts[audit.Late] < 150 {
		t.Errorf("%v of %d slots, %v", r.Counts, r.Slots, r.Breaks)
	}
	redisAlone, err := audit.New(d.Queue().Client(), d.Queue().Namespace(), nil)
	must(t, err)
	alone, err := redisAlone.Run(ctx, audit.Options{Since: time.Since(began)})
	must(t, err)
	if alone[0].Counts[audit.Unknown] == 0 {
		t.Error("Redis alone knows all: the test shows nothing")
	}

	seen, after, triggered := map[string]bool{}, "", 0
	for page := 0; page == 0 || after != ""; page++ {
		runs, err := d.Admin().Schedules.Runs(ctx, "beat", 50, after)
		must(t, err)
		for _, x := range runs.Items {
			if seen[x.Task] {
				t.Errorf("%s is there twice", x.Task)
			}
			if seen[x.Task] = true; x.Slot.IsZero() {
				triggered++
			}
		}
		after = runs.Next
	}
	if int64(len(seen)-triggered) != r.Counts[audit.OnTime]+r.Counts[audit.Late] || triggered != 1 {
		t.Errorf("%d runs and %d triggers, the audit has %v", len(seen), triggered, r.Counts)
	}
	for _, state := range []admin.TaskState{admin.TaskDone, admin.TaskGone} {
		one, err := d.Admin().Tasks.Get(ctx, "one")
		must(t, err)
		if one.State != state || one.Type != "job" || len(one.Runs) != 1 || one.Runs[0].Outcome != history.Done || one.Runs[0].Output != "did one" {
			t.Errorf("%s: %+v", state, one)
		}
		_, _ = d.Admin().Tasks.Delete(ctx, "one") // the second time Redis does not know it
	}
	if _, err := d.Admin().Tasks.Get(ctx, "other"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("a task that never was: %v", err)
	}
}

// A change of leader archives each run once: the next leader goes on where the last one was.
func TestArchive_aChangeOfLeaderDoublesNothing(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	url := testpostgres.Database(t)
	ns := testredis.Namespace(t)
	began := time.Now()
	var stop func()
	for i := range 4 {
		d := archiving(t, rdb, url, fmt.Sprintf("v%d", i), onbeat.Config{Namespace: ns})
		next := run(t, d)
		testredis.Eventually(t, patience, func() bool {
			list, err := d.Admin().Instances.List(t.Context())
			if err != nil {
				return false
			}
			for _, x := range list.Items {
				if x.Leader && x.Release == fmt.Sprintf("v%d", i) {
					return true
				}
			}
			return false
		}, "release %d leads", i)
		time.Sleep(time.Second) // of beat
		if stop != nil {
			stop()
		}
		stop = next
	}
	stop()
	last := archiving(t, rdb, url, "v9", onbeat.Config{Namespace: ns})
	found, err := last.Admin().Activity.Audit(t.Context(), audit.Options{Since: time.Since(began)})
	must(t, err)
	if r := &found.Schedules[0]; r.Broken() || r.Counts[audit.Unknown] > 0 || r.Counts[audit.OnTime]+r.Counts[audit.Late] < 300 {
		t.Errorf("%v of %d slots, %v", r.Counts, r.Slots, r.Breaks)
	}
}

// A database that is not there keeps neither the beat nor the end waiting. An audit of before the first entry of Redis says that it
// could not ask, because nobody knows whether there is more: Redis may have come back empty.
func TestArchive_thatIsAwayIsInNobodysWay(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	d := archiving(t, rdb, "postgres://nobody:s3cret@127.0.0.1:1/none?connect_timeout=2", "v1", onbeat.Config{})
	stop := run(t, d)
	testredis.Eventually(t, patience, func() bool {
		n, err := d.Admin().Activity.Counts(t.Context())
		return err == nil && n.Finished > 200
	}, "it beats")
	if found, err := d.Admin().Activity.Audit(t.Context(), audit.Options{Since: time.Hour}); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("an audit of the last hour: %+v, %v", found, err)
	}
	_, err := d.Enqueue(t.Context(), task.New("job", nil, task.ID("kept"), task.Keep(time.Hour)))
	must(t, err)
	testredis.Eventually(t, patience, func() bool {
		x, err := d.Admin().Tasks.Get(t.Context(), "kept")
		return err == nil && x.State == admin.TaskDone && x.RunsUnread != ""
	}, "the task is shown")
	ended := time.Now()
	stop()
	if took := time.Since(ended); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// The revisions of a schedule go on in the archive where Redis has no more, each once and with what it changed; a page from there
// is small, because each may be large.
func TestArchive_hasTheRevisionsThatRedisHasDropped(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	url := "sqlite://" + filepath.Join(t.TempDir(), "archive.db")
	d := archiving(t, rdb, url, "v1", onbeat.Config{})
	run(t, d)
	ctx, all := t.Context(), d.Admin().Schedules
	kept, err := sqlarchive.Config{URL: url}.Open(ctx, d.Queue().Namespace(), zerolog.Nop())
	must(t, err)
	defer kept.Close()
	const changes = 175
	for i := 1; i <= changes; i++ {
		_, err := all.Apply(ctx, producer.Schedule{Name: "s", Rule: schedule.Every(time.Duration(i) * time.Hour), Task: "job"})
		must(t, err)
		if i%25 == 0 { // Redis has the last 50
			testredis.Eventually(t, patience, func() bool {
				list, err := kept.Revisions(ctx, "s", 0, changes)
				return err == nil && len(list) == i
			}, "%d revisions are archived", i)
		}
	}
	first := int64(0)
	for _, limit := range []int{20, 60, 1000} {
		want, after := changes, ""
		for page := 0; page == 0 || after != ""; page++ {
			list, err := all.Revisions(ctx, "s", limit, after)
			must(t, err)
			if len(list.Items) > min(limit, 100) {
				t.Errorf("limit %d: a page of %d", limit, len(list.Items))
			}
			for _, r := range list.Items {
				if r.Definition == nil || r.Definition.Every != time.Duration(want)*time.Hour || len(r.Changes) == 0 && want > 1 {
					t.Fatalf("limit %d: %+v in place of %dh", limit, r, want)
				}
				want--
				first = r.Revision
			}
			after = list.Next
		}
		if want != 0 {
			t.Errorf("limit %d: %d are missing", limit, want)
		}
	}
	for _, empty := range []bool{false, true} {
		if empty { // as if Redis had come back empty
			keys := d.Queue().Keys()
			must(t, rdb.Del(ctx, keys.Schedules, keys.Last, keys.Revisions, keys.Meta, keys.History, keys.Events, keys.Changed).Err())
		}
		_, err = all.Revert(ctx, "s", first)
		must(t, err)
		if s, err := all.Get(ctx, "s"); err != nil || s.Every != time.Hour {
			t.Errorf("reverted to the first, empty: %t: %+v, %v", empty, s, err)
		}
		if list, err := all.Revisions(ctx, "s", 60, ""); err != nil || len(list.Items) < 51 {
			t.Errorf("then it has %d revisions, empty: %t, %v", len(list.Items), empty, err)
		}
	}
}

// Redis comes back empty, and all instances are new and know nothing. The audit judges the earlier runs by the rule of that time, which
// the archive has. The schedule goes on by that rule.
func TestArchive_knowsTheRuleThatRedisHasForgotten(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	url := "sqlite://" + filepath.Join(t.TempDir(), "archive.db")
	ctx := t.Context()
	began := time.Now()
	d := archiving(t, rdb, url, "v1", onbeat.Config{})
	ns := d.Queue().Namespace()
	beats := func(d *onbeat.Dispatcher, n int) {
		t.Helper()
		stop := run(t, d)
		kept, err := sqlarchive.Config{URL: url}.Open(ctx, ns, zerolog.Nop())
		must(t, err)
		defer kept.Close()
		after := time.Now()
		testredis.Eventually(t, patience, func() bool {
			got := 0
			err := kept.HistoryOf(ctx, "beat", after, func(e history.Entry) error { got += len(e.Notes); return nil })
			return err == nil && got > n
		}, "%d runs are archived", n)
		stop()
	}
	beats(d, 150)
	keys, err := rdb.Keys(ctx, "onbeat:{"+ns+"}:*").Result()
	must(t, err)
	must(t, rdb.Del(ctx, keys...).Err())

	d = archiving(t, rdb, url, "v2", onbeat.Config{Namespace: ns})
	beats(d, 20)
	found, err := d.Admin().Activity.Audit(ctx, audit.Options{Since: time.Since(began)})
	must(t, err)
	r := &found.Schedules[0]
	if r.Broken() || r.Counts[audit.OnTime]+r.Counts[audit.Late] < 170 || r.Counts[audit.OffGrid] > 0 {
		t.Errorf("%v of %d slots, %v", r.Counts, r.Slots, r.Breaks)
	}
}
