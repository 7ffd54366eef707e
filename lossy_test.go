package onbeat_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
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
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// lossy is a namespace on a Redis of its own, which is emptied, with an archive. Its methods fail the test if they fail.
type lossy struct {
	*testing.T
	rdb *redis.Client
	url string // of the archive
	enc task.Encryption

	mu     sync.Mutex
	ran    map[int64]int // slots of fast, by how often they ran
	thrice int           // runs of it
}

func newLossy(t *testing.T, url string) *lossy {
	t.Helper()
	return &lossy{T: t, rdb: testredis.Private(t).Client(), url: url, ran: map[int64]int{}}
}

// start starts an instance that knows nothing, and declares two schedules.
func (w *lossy) start() (*onbeat.Dispatcher, func()) {
	w.Helper()
	d := dispatcher(w.T, w.rdb, onbeat.Config{Namespace: "lossy", Lease: 3 * time.Second, Archive: sqlarchive.Config{URL: w.url}, Encryption: w.enc})
	w.Cleanup(func() { must(w.T, d.Close()) })
	must(w.T, d.Handle("job", handlers.Func(func(_ context.Context, tk *task.Task) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch tk.Schedule {
		case "fast":
			w.ran[tk.Slot.UnixMilli()]++
		case "thrice":
			w.thrice++
		}
		return nil
	})))
	must(w.T, d.Handle("fails", handlers.Func(func(context.Context, *task.Task) error { return errors.New("out of ink") })))
	must(w.T, d.Schedule("mine", schedule.Every(time.Hour), "job", nil))
	must(w.T, d.Schedule("thrice", schedule.Rule{Every: 200 * time.Millisecond, MaxRuns: 3}, "job", nil))
	return d, run(w.T, d)
}

func (w *lossy) apply(d *onbeat.Dispatcher, name string, r schedule.Rule) {
	w.Helper()
	_, err := d.Admin().Schedules.Apply(w.Context(), onbeat.Schedule{Name: name, Rule: r, Task: "job"})
	must(w.T, err)
}

func (w *lossy) get(d *onbeat.Dispatcher, name string) admin.ScheduleDetail {
	w.Helper()
	s, err := d.Admin().Schedules.Get(w.Context(), name)
	must(w.T, err)
	return s
}

// has waits until there is a schedule.
func (w *lossy) has(d *onbeat.Dispatcher, name string) {
	w.Helper()
	testredis.Eventually(w.T, patience, func() error {
		_, err := d.Admin().Schedules.Get(w.Context(), name)
		return err
	}, "%s is there", name)
}

// settled waits until the leader has looked into the archive.
func (w *lossy) settled(d *onbeat.Dispatcher) {
	w.Helper()
	testredis.Eventually(w.T, patience, func() bool {
		state, err := d.Queue().Regained(w.Context())
		return err == nil && state == "archive"
	}, "the archive was asked")
}

func (w *lossy) empty() { must(w.T, w.rdb.FlushAll(w.Context()).Err()) }

// troubles are the texts of the status about losses.
func (w *lossy) troubles(d *onbeat.Dispatcher) string {
	w.Helper()
	s, err := d.Admin().Activity.Status(w.Context())
	must(w.T, err)
	var texts []string
	for _, l := range s.Trouble {
		if l.Kind == admin.LostWrites {
			texts = append(texts, l.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// archived waits until the archive has a schedule, or not.
func (w *lossy) archived(a archive.Archive, name string, want func(*archive.Schedule) bool) {
	w.Helper()
	testredis.Eventually(w.T, patience, func() bool {
		list, err := a.Schedules(w.Context(), "", 0)
		if err != nil {
			return false
		}
		for i := range list {
			if list[i].Name == name {
				return want(&list[i])
			}
		}
		return want(nil)
	}, "the archive knows %s", name)
}

func (w *lossy) open() archive.Archive {
	w.Helper()
	var a archive.Archive
	var err error
	testredis.Eventually(w.T, patience, func() error { // the leader may make the tables just now
		if a, err = (sqlarchive.Config{URL: w.url}).Open(w.Context(), "lossy", zerolog.Nop()); errors.Is(err, archive.ErrUnavailable) {
			return err
		}
		return nil
	}, "the archive opens")
	must(w.T, err)
	w.Cleanup(func() { must(w.T, a.Close()) })
	return a
}

// audit judges all slots since the hour before, by schedule.
func (w *lossy) audit(d *onbeat.Dispatcher) map[string]*audit.Report {
	w.Helper()
	a, err := d.Admin().Activity.Audit(w.Context(), audit.Options{Grace: time.Nanosecond})
	must(w.T, err)
	judged := map[string]*audit.Report{}
	for i := range a.Schedules {
		judged[a.Schedules[i].Schedule] = &a.Schedules[i]
	}
	return judged
}

func there(s *archive.Schedule) bool { return s != nil }

// databases runs a test with an archive in each.
func databases(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite://"+filepath.Join(t.TempDir(), "archive.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, testpostgres.Database(t))
	})
}
