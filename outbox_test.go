package onbeat_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

// An instance moves the tasks of its outbox while it runs, and none after.
func TestOutbox_isMovedWhileTheInstanceRuns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)") // a mover writes too
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, outbox.Migrate(t.Context(), db))
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Outbox: outbox.SQL{URL: "sqlite://" + file, Poll: 50 * time.Millisecond}})
	var ran atomic.Int64
	must(t, d.Handle("job", handlers.Typed(func(_ context.Context, n int) error {
		ran.Add(int64(n))
		return nil
	})))
	var refused *task.FieldError
	if err := d.Outbox().Add(t.Context(), db, task.New("job", "no number")); !errors.As(err, &refused) || refused.Field != "payload" {
		t.Errorf("a payload that the handler cannot use: %v", err)
	}
	must(t, d.Outbox().Add(t.Context(), db, task.New("job", 1), task.New("job", 2)))
	stop := run(t, d)
	testredis.Eventually(t, patience, func() bool { return ran.Load() == 3 }, "not all ran")
	must(t, d.Outbox().Add(t.Context(), db, task.New("job", 4)))
	testredis.Eventually(t, patience, func() bool { return ran.Load() == 7 }, "the third did not run")
	stop()
	must(t, d.Outbox().Add(t.Context(), db, task.New("job", 8)))
	var rows int
	must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&rows))
	if rows != 1 || ran.Load() != 7 {
		t.Errorf("%d rows, ran %d", rows, ran.Load())
	}
}

type order struct{ Lines []string }

func (o order) Validate() error { _ = o.Lines[0]; return nil } // a bug: an order may have none

// A row whose payload makes a Validate panic is refused. The process goes on, and so does the next row.
func TestOutbox_goesOnAfterAPayloadWhoseCheckPanics(t *testing.T) {
	t.Parallel()
	at := outbox.SQL{URL: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Poll: 50 * time.Millisecond}
	ns := testredis.Namespace(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Namespace: ns, Outbox: at})
	ran := make(chan string, 2)
	must(t, d.Handle("order", handlers.Typed(func(_ context.Context, o order) error {
		ran <- o.Lines[0]
		return nil
	})))
	db, err := at.Open()
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, outbox.Migrate(t.Context(), db.DB))
	must(t, outbox.Add(t.Context(), db.DB, task.New("order", order{}), task.New("order", order{Lines: []string{"tea"}})))
	if _, err := d.Enqueue(t.Context(), task.New("order", order{})); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("enqueued: %v", err)
	}
	run(t, d)
	if got := <-ran; got != "tea" {
		t.Errorf("ran %q", got)
	}
	testredis.Eventually(t, patience, func() bool {
		s, err := outbox.Look(t.Context(), at, ns)
		return err == nil && s.Refused == 1 && strings.Contains(s.Why, "order")
	}, "the row is not refused")
}

// An instance without a database runs all the same.
func TestOutbox_thatIsAwayHoldsUpNothing(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Outbox: outbox.SQL{URL: "postgres://u:hush@127.0.0.1:1/d"}})
	ran := make(chan struct{})
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error {
		close(ran)
		return nil
	})))
	stop := run(t, d)
	_, err := d.Enqueue(t.Context(), task.New("job", nil))
	must(t, err)
	select {
	case <-ran:
	case <-time.After(patience):
		t.Error("it did not run")
	}
	began := time.Now()
	if stop(); time.Since(began) > 10*time.Second {
		t.Errorf("it took %s to stop", time.Since(began))
	}
	bad := onbeat.Config{Namespace: "x", Outbox: outbox.SQL{URL: "mysql://u:hush@h/d"}}
	if _, err := onbeat.New(testredis.Client(t), bad); !errors.Is(err, task.ErrInvalid) || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}
