package onbeat_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// An enqueued task has one effect, even with retries by hand, and so has a slot. An ID that is used again has another effect, and so
// has a slot each time that a person backfills it.
func TestOnce_hasOneEffectForEachThatWasAskedFor(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "effects.db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := handlers.OnceTable(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE effects (task text NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	wantEffects := func(what, like string, want int) {
		t.Helper()
		var n int
		testredis.Eventually(t, patience, func() bool {
			err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM effects WHERE task LIKE $1", like).Scan(&n)
			return err == nil && n >= want
		}, "%s: too few effects", what)
		if n != want {
			t.Errorf("%s: %d effects, want %d", what, n, want)
		}
	}

	ns := testredis.Namespace(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Namespace: ns})
	d.Use(diesOnce)
	if err := d.Handle("charge", handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (task) VALUES ($1)", x.ID)
		return err
	})); err != nil {
		t.Fatal(err)
	}
	if err := d.Schedule("s", schedule.Every(time.Hour), "charge", nil); err != nil {
		t.Fatal(err)
	}
	defer run(t, d)()
	wantEffects("a slot", "s@%", 1)

	ctx := t.Context()
	enqueue := func(payload any) {
		t.Helper()
		if _, err := d.Enqueue(ctx, task.New("charge", payload, task.ID("a"))); err != nil {
			t.Fatal(err)
		}
	}
	tasks := d.Admin().Tasks
	is := func(state admin.TaskState) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool {
			got, err := tasks.Get(ctx, "a")
			return err == nil && got.State == state
		}, "a is not %s", state)
	}
	enqueue("dies")
	is(admin.TaskDead)
	wantEffects("a task whose report was lost", "a", 1)
	if _, err := tasks.Retry(ctx, "a", false); err != nil {
		t.Fatal(err)
	}
	is(admin.TaskDone)
	wantEffects("a retry by hand", "a", 1)
	if _, err := tasks.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	enqueue(nil)
	is(admin.TaskDone)
	wantEffects("an ID that is used again", "a", 2)

	now := time.Now()
	for i, again := range []bool{false, false, true} {
		if _, err := d.Schedules().Backfill(ctx, "s", producer.Backfilling{From: now.Add(-210 * time.Minute), To: now.Add(-30 * time.Minute), Again: again}); err != nil {
			t.Fatal(err)
		}
		wantEffects("a backfill", "s@%+backfill", []int{3, 3, 6}[i])
		testredis.Eventually(t, patience, func() bool { // until it is in the history
			c, err := d.Queue().Counts(ctx)
			return err == nil && c.Running == 0
		}, "the backfill runs on")
	}
	var rows, own, pushed int
	const query = "SELECT count(*), sum(namespace = $1), sum(effect = task) FROM onbeat_once"
	if err := db.QueryRowContext(ctx, query, ns).Scan(&rows, &own, &pushed); err != nil || rows != 9 || own != rows || pushed != 1 {
		t.Errorf("onbeat_once has %d rows, want 9; %d of the namespace, want all; %d of pushed slots, want 1: %v", rows, own, pushed, err)
	}
}

// diesOnce is a middleware by which the report of a run is lost: the effect is made, and the task is dead.
func diesOnce(next handlers.TaskHandler) handlers.TaskHandler {
	return handlers.Wrap(next, func(ctx context.Context, x *task.Task) error {
		err := next.Handle(ctx, x)
		if string(x.Payload) == `"dies"` && len(x.Failures) == 0 {
			return handlers.Dead(errors.Join(err, errors.New("its report is lost")))
		}
		return err
	})
}
