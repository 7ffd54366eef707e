package onbeat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// seen counts the runs of tasks.
type seen struct {
	mu   sync.Mutex
	runs map[string]int
}

func (s *seen) handle(_ context.Context, t *task.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[t.ID]++
	return nil
}

func (s *seen) count() (ids, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.runs {
		runs += n
	}
	return len(s.runs), runs
}

// Two instances of a namespace of four partitions share the leads, run each task once, and keep every schedule on its grid.
func TestPartitions_shareTheWork(t *testing.T) {
	t.Parallel()
	rdb := testredis.Private(t).Client()
	ns := testredis.Namespace(t)
	did := &seen{runs: map[string]int{}}
	start := func() (d *onbeat.Dispatcher, stop func()) {
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 4, Release: "v1", Consume: "release", Concurrency: 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Handle("job", handlers.Func(did.handle)), d.Handle("beat", handlers.Func(did.handle))); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if err := d.Schedule(fmt.Sprint("beat-", i), schedule.Every(200*time.Millisecond), "beat", nil); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		stop = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop)
		return d, stop
	}
	d, _ := start()
	_, stop := start()
	leads := func() (n map[string]int, all int) {
		list, err := d.Admin().Instances.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n = map[string]int{}
		for _, i := range list.Items {
			n[i.ID] = len(i.Leads)
			all += len(i.Leads)
		}
		return n, all
	}
	testredis.Eventually(t, 30*time.Second, func() error {
		if n, all := leads(); len(n) != 2 || all != 4 {
			return fmt.Errorf("they lead %v", n)
		}
		return nil
	}, "not all partitions are led")
	const tasks = 200
	list := make([]*task.Task, tasks)
	for i := range list {
		list[i] = task.New("job", nil)
		if i%2 == 0 {
			list[i].Key = fmt.Sprint("k", i)
		}
	}
	results, err := d.EnqueueAll(t.Context(), list)
	if err != nil || len(results) != tasks {
		t.Fatal(len(results), err)
	}
	for range 20 {
		if _, err := d.Enqueue(t.Context(), task.New("job", nil, task.Unique("u"+fmt.Sprint(time.Now().UnixNano()), time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	testredis.Eventually(t, 30*time.Second, func() error {
		c, err := d.Admin().Activity.Counts(t.Context())
		if c.Finished < tasks+20+12*20 {
			return fmt.Errorf("%+v %w", c, err)
		}
		return err
	}, "not all ran")
	stop()
	testredis.Eventually(t, 30*time.Second, func() error {
		if n, all := leads(); len(n) != 1 || all != 4 {
			return fmt.Errorf("they lead %v", n)
		}
		return nil
	}, "the other one does not lead all")
	if ids, runs := did.count(); ids != runs {
		t.Errorf("%d tasks had %d runs", ids, runs)
	}
	for _, r := range results[:10] {
		if x, err := d.Admin().Tasks.Get(t.Context(), r.ID); err == nil || !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%+v %v, want it finished and gone", x, err)
		}
	}
	s, err := d.Admin().Activity.Status(t.Context())
	if err != nil || !s.Well || s.Counts.Schedules != 12 || s.Counts.Instances != 1 || len(s.Leads) != 1 || len(s.Leads[0].Partitions) != 4 {
		t.Errorf("%+v %v", s, err)
	}
	wantOnBeat(t, d.Admin(), 12)
}

// wantOnBeat wants all slots of some schedules to be on time or late, and judged.
func wantOnBeat(t *testing.T, a *admin.Admin, schedules int) {
	t.Helper()
	got, err := a.Activity.Audit(t.Context(), audit.Options{})
	if err != nil || len(got.Schedules) != schedules {
		t.Fatalf("%d schedules: %v", len(got.Schedules), err)
	}
	for _, r := range got.Schedules {
		if !r.OK() {
			t.Errorf("%+v", r)
		}
	}
}

// A process that names another number of partitions is refused, whatever it does.
func TestPartitions_refuseAnotherNumber(t *testing.T) {
	t.Parallel()
	rdb := testredis.Private(t).Client()
	ns := testredis.Namespace(t)
	open := func(n int) *onbeat.Dispatcher {
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: n})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return nil })); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if _, err := open(3).Enqueue(t.Context(), task.New("job", nil)); err != nil {
		t.Fatal(err)
	}
	refused := func(n int) {
		t.Helper()
		d := open(n)
		_, one := d.Enqueue(t.Context(), task.New("job", nil))
		_, all := d.EnqueueAll(t.Context(), []*task.Task{task.New("job", nil), task.New("job", nil)})
		_, apply := d.Admin().Schedules.Apply(t.Context(), producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "job"})
		for what, err := range map[string]error{"enqueue": one, "a batch": all, "apply": apply, "run": d.Run(t.Context())} {
			if !errors.Is(err, queue.ErrPartitions) {
				t.Errorf("%d partitions, %s: %v", n, what, err)
			}
		}
	}
	for _, n := range []int{1, 2, 4} {
		refused(n)
	}
	// The node that had the number came back empty: a process that knows no partitions must not make it a namespace without them.
	if err := rdb.Del(t.Context(), queue.Partition{Namespace: ns}.Keys().Meta).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := rdb.HSet(t.Context(), queue.Partition{Namespace: ns, Number: 1}.Keys().Meta, "done", 1).Result(); err != nil {
		t.Fatal(err)
	}
	refused(1)
	if _, err := open(3).Enqueue(t.Context(), task.New("job", nil)); err != nil {
		t.Fatal(err)
	}
	if n, err := queue.Partitions(t.Context(), rdb, ns); n != 3 || err != nil {
		t.Error(n, err)
	}
}

// An instance moves the rows of an outbox to the partitions of their tasks. A task whose names would lie apart is refused.
func TestPartitions_ofAnOutbox(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, outbox.Migrate(t.Context(), db))
	rdb := testredis.Client(t)
	d, err := onbeat.New(rdb, onbeat.Config{
		Namespace: testredis.Namespace(t), Partitions: 3, Limits: map[string]int{"few": 1}, Outbox: outbox.SQL{URL: "sqlite://" + file, Poll: 50 * time.Millisecond},
	})
	must(t, err)
	did := &seen{runs: map[string]int{}}
	must(t, errors.Join(d.Handle("job", handlers.Func(did.handle)), d.Handle("few", handlers.Func(did.handle))))
	ids := map[string]bool{}
	for i := range 60 {
		x := task.New("job", nil)
		switch i % 4 {
		case 0:
			x.Key = fmt.Sprint("k", i)
		case 1:
			x.UniqueKey, x.UniqueFor = fmt.Sprint("u", i), time.Hour
		case 2:
			x.Type = "few"
		}
		must(t, d.Outbox().Add(t.Context(), db, x))
		ids[x.ID] = true
	}
	var apart *task.FieldError
	for i := range 20 { // two of three lie apart
		err = errors.Join(err, d.Outbox().Add(t.Context(), db, task.New("few", nil, task.Key(fmt.Sprint("key", i), 1), task.In(time.Hour))))
	}
	if !errors.As(err, &apart) {
		t.Errorf("a key and a limited type that lie apart: %v", err)
	}
	run(t, d)
	testredis.Eventually(t, patience, func() error {
		if n, _ := did.count(); n < len(ids) {
			return fmt.Errorf("%d of %d ran", n, len(ids))
		}
		return nil
	}, "not all ran")
	if ids, runs := did.count(); ids != runs {
		t.Errorf("%d tasks had %d runs", ids, runs)
	}
	var rows int
	must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&rows))
	if rows > 0 {
		t.Errorf("%d rows are left", rows)
	}
}

// Each partition archives its own history, and the audit reads all of them.
func TestPartitions_ofAnArchive(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	cfg := onbeat.Config{
		Namespace: testredis.Namespace(t), Partitions: 3, Archive: sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "past.db")},
	}
	d, err := onbeat.New(rdb, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	const schedules = 9
	for i := range schedules {
		must(t, d.Schedule(fmt.Sprint("s", i), schedule.Every(100*time.Millisecond), "job", nil))
	}
	stop := run(t, d)
	var pasts []archive.Archive
	for i := range 3 {
		past, err := cfg.Archive.Open(t.Context(), queue.Partition{Namespace: cfg.Namespace, Number: i + 1}.String(), zerolog.Nop())
		must(t, err)
		t.Cleanup(func() { must(t, past.Close()) })
		pasts = append(pasts, past)
	}
	testredis.Eventually(t, patience, func() error {
		archived := map[string]int{} // runs that have ended, by schedule
		for _, past := range pasts {
			must(t, past.History(t.Context(), time.Time{}, func(e archive.Entry) error {
				for i := range e.Notes {
					if n := &e.Notes[i]; n.Word == history.Done {
						archived[n.Schedule]++
					}
				}
				return nil
			}))
		}
		for i := range schedules {
			if n := archived[fmt.Sprint("s", i)]; n < 20 {
				return fmt.Errorf("%d of s%d", n, i)
			}
		}
		return nil
	}, "too few runs are archived")
	stop()
	for i := range 3 { // what Redis has of the history is gone
		must(t, rdb.Del(t.Context(), queue.Partition{Namespace: cfg.Namespace, Number: i + 1}.Keys().History).Err())
	}
	got, err := d.Admin().Activity.Audit(t.Context(), audit.Options{})
	must(t, err)
	if len(got.Schedules) != schedules {
		t.Errorf("%d schedules", len(got.Schedules))
	}
	for _, r := range got.Schedules {
		if r.Counts[audit.OnTime]+r.Counts[audit.Late] < 20 {
			t.Errorf("%s: %v", r.Schedule, r.Counts)
		}
	}
}

// A type gets a limit when schedules of it lie elsewhere: they stay, and none is brought there again.
func TestPartitions_aLimitThatComesLater(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Client(t), testredis.Namespace(t)
	open := func(limits map[string]int) *onbeat.Dispatcher {
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 3, Limits: limits})
		must(t, err)
		return d
	}
	m := split.Map{Partitions: 3}
	named := func(prefix string, beside bool) string {
		for i := 0; ; i++ {
			if name := fmt.Sprint(prefix, i); (m.Of(name) == m.Of("few")) == beside {
				return name
			}
		}
	}
	apart, beside, gone := named("s", false), named("s", true), named("gone", false)
	before := open(nil).Admin().Schedules
	for _, name := range []string{apart, beside, gone} {
		for _, typ := range []string{"few", "many"} {
			_, err := before.Apply(t.Context(), producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: typ})
			must(t, err)
		}
	}
	oldest := func(name string) int64 {
		list, err := before.Revisions(t.Context(), name, 10, "")
		must(t, err)
		return list.Items[len(list.Items)-1].Revision
	}
	_, err := before.Revert(t.Context(), gone, oldest(gone)) // there is no limit yet
	must(t, err)
	after := open(map[string]int{"few": 1}).Admin().Schedules
	var refused *task.FieldError
	if _, err := after.Revert(t.Context(), apart, oldest(apart)); !errors.As(err, &refused) || refused.Field != "task" {
		t.Errorf("reverted to a type that lies apart: %v", err)
	}
	_, err = after.Revert(t.Context(), beside, oldest(beside))
	must(t, err)

	for _, name := range []string{gone, beside} {
		_, err := after.Delete(t.Context(), name)
		must(t, err)
	}
	if _, err := after.Restore(t.Context(), gone); !errors.As(err, &refused) || refused.Field != "task" {
		t.Errorf("restored where it lies apart: %v", err)
	}
	_, err = after.Restore(t.Context(), beside)
	must(t, err)
}
