package main

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// The process died behind its COMMIT, before it could report: the task runs again, with the same ID.
func TestBook_chargesOnceThoughTheRunIsRepeated(t *testing.T) {
	t.Parallel()
	db, err := open(t.Context(), filepath.Join(t.TempDir(), "accounts.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := task.New("charge", charge{"ann", 1000}, task.ID("invoice-42"))
	run.Created = time.Now()
	for run.Attempt = 1; run.Attempt <= 3; run.Attempt++ {
		if out := onbeattest.Run(t, book(db), run); out.State != onbeattest.Done {
			t.Fatalf("%+v", out)
		}
	}
	if got := cents(t, db); got != 1000 {
		t.Errorf("charged %d, want 1000", got)
	}
}

func TestOnce_chargesOnceThoughItStartsTwice(t *testing.T) {
	t.Parallel()
	file, name := program.Build(t, "."), filepath.Join(t.TempDir(), "accounts.db")
	env := []string{"REDIS_URL=" + testredis.Private(t).URL(), "DATABASE=" + name}
	db, err := open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := program.Start(t, file, env)
	testredis.Eventually(t, time.Minute, func() bool { return cents(t, db) == 1000 }, "ann is charged")
	first.Stop()
	second := program.Start(t, file, env)
	second.Says("invoice-42 was enqueued before", 1)
	second.Stop()
	if got := cents(t, db); got != 1000 {
		t.Errorf("charged %d, want 1000", got)
	}
}

func cents(t *testing.T, db *sql.DB) (sum int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "select coalesce(sum(cents), 0) from accounts").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}
