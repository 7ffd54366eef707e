package integration

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/rs/zerolog"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/task"
)

// A process is killed at random moments, again and again, while its handlers write to a database. Under handlers.Once each task
// has one effect. Without it, some have two: else no kill would have come between an effect and its report.
func TestEffects_happenOnceThoughTheirProcessIsKilled(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		killedWithin(t, "postgres", "pgx", testpostgres.Private(t).Database()) // it syncs what it commits
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		killedWithin(t, "sqlite", "sqlite", "file:"+filepath.Join(t.TempDir(), "effects.db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
	})
}

func killedWithin(t *testing.T, kind, driver, source string) {
	w := &effectsWorld{world: newWorld(t), driver: driver, source: source}
	w.open()
	const each = 30
	kills := testredis.Size(10, 200)
	for i := range kills {
		w.enqueue(each)
		before := w.count("SELECT count(*) FROM effects")
		p := w.starts(fmt.Sprintf("killed-%d", i))
		testredis.Eventually(t, 40*time.Second, func() bool { return w.count("SELECT count(*) FROM effects") > before }, "%d makes no effect", i)
		time.Sleep(rand.N(250 * time.Millisecond)) // the fault's own moment
		p.Kill()
	}
	last := w.starts("last")
	rdb := testredis.Client(t)
	testredis.Eventually(t, 60*time.Second, func() bool {
		return rdb.HLen(t.Context(), "onbeat:{"+w.NS+"}:tasks").Val() == 0
	}, "tasks remain")
	if err := last.Signal(trial.SigTerm); err != nil {
		t.Fatal(err)
	}
	<-last.Exited()

	all := kills * each
	const of = "SELECT count(*) FROM effects WHERE type = $1"
	const once = "SELECT count(*) FROM (SELECT task FROM effects WHERE type = $1 GROUP BY task HAVING count(*) = 1) AS single"
	if n, single, rows := w.count(of, "once"), w.count(once, "once"), w.count("SELECT count(*) FROM onbeat_once"); n != all || single != all || rows != all {
		t.Errorf("%d tasks had %d effects, %d of them one; onbeat_once has %d rows", all, n, single, rows)
	}
	n, single := w.count(of, "plain"), w.count(once, "plain")
	if n <= all || single == all {
		t.Errorf("without Once %d tasks had %d effects, %d of them one: this proves nothing", all, n, single)
	}
	w.Row("killed within handlers.Once ("+kind+")", nil,
		fmt.Sprintf("%d kills; %d effects of %d tasks; without Once %d effects, %d tasks had more than one", kills, all, all, n, all-single))
}

// effectsWorld has a database besides.
type effectsWorld struct {
	*world
	driver, source string
	db             *sql.DB
	d              *onbeat.Dispatcher // enqueues
}

func (w *effectsWorld) open() {
	w.Helper()
	var err error
	if w.db, err = sql.Open(w.driver, w.source); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.db.Close() })
	if _, err := w.db.ExecContext(w.Context(), "CREATE TABLE effects (task text NOT NULL, type text NOT NULL)"); err != nil {
		w.Fatal(err)
	}
	if err := handlers.OnceTable(w.Context(), w.db); err != nil {
		w.Fatal(err)
	}
	if w.d, err = onbeat.New(testredis.Client(w.T), onbeat.Config{Namespace: w.NS}); err != nil {
		w.Fatal(err)
	}
}

func (w *effectsWorld) count(query string, args ...any) (n int) {
	w.Helper()
	if err := w.db.QueryRowContext(w.Context(), query, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// enqueue adds tasks of both types. Each has attempts for all kills.
func (w *effectsWorld) enqueue(each int) {
	w.Helper()
	var list []*task.Task
	for range each {
		for _, typ := range []string{"once", "plain"} {
			list = append(list, task.New(typ, nil, task.MaxAttempts(1000), task.Retry(10*time.Millisecond, 100*time.Millisecond)))
		}
	}
	if _, err := w.d.EnqueueAll(w.Context(), list); err != nil {
		w.Fatal(err)
	}
}

// The environment of a process that makes effects: see TestMain.
const (
	effectsDriver = "ONBEAT_TEST_EFFECTS_DRIVER"
	effectsSource = "ONBEAT_TEST_EFFECTS_SOURCE"
)

// starts starts an instance with handlers of its own: this test's binary, which knows its part by the environment.
func (w *effectsWorld) starts(release string) *trial.Process {
	w.Helper()
	log := filepath.Join(w.Dir, release+".log")
	p, err := trial.Start(release, log, trial.Program{
		Env: append(w.Env(), effectsDriver+"="+w.driver, effectsSource+"="+w.source, "ONBEAT_RELEASE="+release), Dir: w.Dir,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() {
			text, _ := os.ReadFile(log)
			w.Logf("%s said:\n%s", release, text)
		}
	})
	return p
}

// makeEffects is the process that is killed.
func makeEffects() error {
	db, err := sql.Open(os.Getenv(effectsDriver), os.Getenv(effectsSource))
	if err != nil {
		return err
	}
	defer db.Close()
	rdb, err := onbeat.Dial(os.Getenv("ONBEAT_REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{
		Namespace: os.Getenv("ONBEAT_NAMESPACE"), Release: os.Getenv("ONBEAT_RELEASE"), Lease: time.Second, Concurrency: 20,
		Log: zerolog.New(os.Stderr).With().Timestamp().Logger(),
	})
	if err != nil {
		return err
	}
	d.Use(lingers)
	if err := d.Handle("once", handlers.Once(db, makeEffect)); err != nil {
		return err
	}
	if err := d.Handle("plain", handlers.Func(func(ctx context.Context, t *task.Task) error { return plainEffect(ctx, db, t) })); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return d.Run(ctx)
}

// lingers is a middleware that goes on for a moment when the effect is made: then a kill repeats the run.
func lingers(next handlers.TaskHandler) handlers.TaskHandler {
	return handlers.Wrap(next, func(ctx context.Context, t *task.Task) error {
		err := next.Handle(ctx, t)
		time.Sleep(rand.N(30 * time.Millisecond))
		return err
	})
}

func makeEffect(ctx context.Context, tx *sql.Tx, t *task.Task) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (task, type) VALUES ($1, $2)", t.ID, t.Type)
	time.Sleep(rand.N(3 * time.Millisecond)) // in the middle of the transaction
	return err
}

// plainEffect is the same without Once.
func plainEffect(ctx context.Context, db *sql.DB, t *task.Task) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := makeEffect(ctx, tx, t); err != nil {
		return err
	}
	return tx.Commit()
}
