package handlers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/task"
)

// onEach runs a test on PostgreSQL and on SQLite, each with the table of Once and a table for effects.
func onEach(t *testing.T, test func(t *testing.T, db *sql.DB)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, withTables(t, open(t, "pgx", testpostgres.Database(t))))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, withTables(t, openSQLite(t)))
	})
}

func open(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func sqliteFile(t *testing.T) string {
	return "file:" + filepath.Join(t.TempDir(), "effects.db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)" // no test cuts the power
}

func openSQLite(t *testing.T) *sql.DB { return open(t, "sqlite", sqliteFile(t)) }

func withTables(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	must(t, handlers.OnceTable(t.Context(), db))
	execute(t, db, "CREATE TABLE effects (task text NOT NULL)")
	return db
}

func execute(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	must(t, err)
}

func count(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// effect is what a handler does: it adds a row.
func effect(ctx context.Context, tx *sql.Tx, t *task.Task) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (task) VALUES ($1)", t.ID)
	return err
}

func wantEffects(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	n, rows := count(t, db, "SELECT count(*) FROM effects"), count(t, db, "SELECT count(*) FROM onbeat_once")
	if n != want || rows != want {
		t.Errorf("%d effects and %d rows of onbeat_once, want %d", n, rows, want)
	}
}

// made is a run as a dispatcher hands it out.
func made(id string, attempt int) *task.Task {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	return &task.Task{ID: id, Type: "charge", Created: at, Attempt: attempt, Fence: int64(10 + attempt), Instance: "i", Claimed: at.Add(time.Second)}
}

func TestOnce_makesOneEffectOfManyRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		calls := 0
		h := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
			calls++
			return effect(ctx, tx, x)
		})
		ctx := handlers.WithNamespace(t.Context(), "shop")
		for attempt := range 3 {
			must(t, h.Handle(ctx, made("a", 1+attempt)))
		}
		if calls != 1 {
			t.Errorf("called %d times", calls)
		}
		wantEffects(t, db, 1)
		n := count(t, db, `SELECT count(*) FROM onbeat_once WHERE namespace = 'shop' AND type = 'charge' AND effect = 'a 1800000000000'
			AND task = 'a' AND attempt = 1 AND fence = 11 AND instance = 'i' AND claimed = 1800000001000 AND until = 1802592001000`)
		if n != 1 {
			t.Error("the row says something else")
		}
		must(t, h.Handle(t.Context(), made("a", 1)))
		wantEffects(t, db, 2) // of another namespace
	})
}

func TestOnce_commitsNothingOfARunThatFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	onEach(t, func(t *testing.T, db *sql.DB) {
		for name, c := range map[string]struct {
			end  func() error
			want error
		}{
			"error": {func() error { return handlers.Dead(boom) }, handlers.ErrDead}, "panic": {func() error { panic(boom) }, boom},
			"goexit": {func() error { runtime.Goexit(); return nil }, handlers.ErrGoexit},
		} {
			h := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
				must(t, effect(ctx, tx, x))
				return c.end()
			})
			ended := make(chan error, 1)
			go handlers.Do(t.Context(), h, made("a", 1), func(err error) { ended <- err })
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			wantEffects(t, db, 0)
		}
		must(t, handlers.Once(db, effect).Handle(t.Context(), made("a", 4)))
		wantEffects(t, db, 1)
	})
}

// Two runs of a task at once: the second waits for the first.
func TestOnce_makesOneEffectOfTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, firstFails := range map[string]error{"the first commits": nil, "the first fails": boom} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, db *sql.DB) {
				within, goOn := make(chan struct{}), make(chan struct{})
				slow := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
					must(t, effect(ctx, tx, x))
					close(within)
					<-goOn
					return firstFails
				})
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- slow.Handle(t.Context(), made("a", 1)) }()
				<-within
				go func() { second <- handlers.Once(db, effect).Handle(t.Context(), made("a", 2)) }()
				select {
				case err := <-second:
					t.Errorf("the second did not wait: %v", err)
				case <-time.After(50 * time.Millisecond):
				}
				close(goOn)
				if err := <-first; !errors.Is(err, firstFails) {
					t.Errorf("the first: %v", err)
				}
				must(t, <-second)
				wantEffects(t, db, 1)
			})
		})
	}
}

func TestOnce_waitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		slow := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
			must(t, effect(ctx, tx, x))
			ctx, done := context.WithTimeout(ctx, 50*time.Millisecond)
			defer done()
			before := time.Now()
			if err := handlers.Once(db, effect).Handle(handlers.NewContext(ctxWithoutValues{ctx}, x), made("a", 2)); err == nil || ctx.Err() == nil {
				t.Errorf("the second: %v", err)
			}
			if took := time.Since(before); took > 5*time.Second {
				t.Errorf("it waited for %v", took)
			}
			return nil
		})
		must(t, slow.Handle(t.Context(), made("a", 1)))
		wantEffects(t, db, 1)
	})
}

// ctxWithoutValues ends with its parent and knows nothing else of it, like a context of another process.
type ctxWithoutValues struct{ context.Context }

func (ctxWithoutValues) Value(any) any { return nil }

func TestOnce_commitsNothingAfterItsContextHasEnded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		ctx, lose := context.WithCancel(t.Context())
		err := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
			defer lose()
			return effect(ctx, tx, x)
		}).Handle(ctx, made("a", 1))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Handle = %v", err)
		}
		wantEffects(t, db, 0)
	})
}

// A handler that was told nothing of its table fails, and its task is not dead: the table may be there soon.
func TestOnce_namesTheTableThatIsMissing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		execute(t, db, "DROP TABLE onbeat_once")
		err := handlers.Once(db, effect).Handle(t.Context(), made("a", 1))
		if !errors.Is(err, handlers.ErrNoOnceTable) || handlers.IsDead(err) || !strings.Contains(err.Error(), "call handlers.OnceTable") {
			t.Errorf("Handle = %v", err)
		}
		must(t, handlers.OnceTable(t.Context(), db))
		must(t, handlers.Once(db, effect).Handle(t.Context(), made("a", 2)))
		wantEffects(t, db, 1)
	})
}

func TestOnceTable_isMadeByAllAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		for range 5 {
			execute(t, db, "DROP TABLE onbeat_once")
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if err := handlers.OnceTable(t.Context(), db); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		must(t, handlers.Once(db, effect).Handle(t.Context(), made("a", 1)))
		wantEffects(t, db, 1)
	})
}

// A program may have less rights than the migrations that made the table.
func TestOnceTable_asksForNoRightThatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	url := testpostgres.Database(t)
	db := withTables(t, open(t, "pgx", url))
	role := fmt.Sprintf("program_%d", time.Now().UnixNano())
	execute(t, db, "CREATE ROLE "+role+" LOGIN")
	execute(t, db, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	execute(t, db, "GRANT SELECT, INSERT, DELETE ON onbeat_once TO "+role)
	execute(t, db, "GRANT INSERT ON effects TO "+role)
	program := open(t, "pgx", strings.Replace(url, "//test@", "//"+role+"@", 1))
	must(t, handlers.OnceTable(t.Context(), program))
	must(t, handlers.Once(program, effect).Handle(t.Context(), made("a", 1)))
	wantEffects(t, db, 1)
}

// Old rows leave, a thousand at a time; those that are kept for ever do not.
func TestOnce_removesOldRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		keeps := handlers.Once(db, effect, handlers.OnceKeep(0))
		must(t, keeps.Handle(t.Context(), made("for ever", 1)))
		long := handlers.Once(db, effect, handlers.OnceKeep(time.Hour))
		must(t, long.Handle(t.Context(), made("an hour", 1)))
		execute(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
			INSERT INTO onbeat_once SELECT 'gone', 'old', 'e' || i, 'x', 1, 1, 'i', 0, i FROM n`)
		old := func() int { return count(t, db, "SELECT count(*) FROM onbeat_once WHERE namespace = 'gone'") }
		h := handlers.Once(db, effect)
		for i := range 101 {
			must(t, h.Handle(t.Context(), made(fmt.Sprintf("new-%d", i), 1)))
			if n := old(); i < 100 && n != 500 || i == 100 && n != 0 {
				t.Fatalf("%d old rows after %d effects", n, i+1)
			}
		}
		wantEffects(t, db, 103)
	})
}

// A transaction that cannot be serialized is a failed run, and the next run makes the effect.
func TestOnce_failsWhatCannotBeSerialized(t *testing.T) {
	t.Parallel()
	db := withTables(t, open(t, "pgx", testpostgres.Database(t)))
	read := make(chan struct{}, 2)
	goOn := make(chan struct{})
	h := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM effects").Scan(&n); err != nil {
			return err
		}
		read <- struct{}{}
		<-goOn
		if n > 0 { // at most one effect, whoever makes it
			return nil
		}
		return effect(ctx, tx, x)
	}, handlers.OnceIsolation(sql.LevelSerializable))
	ended := make(chan error, 2)
	for _, id := range []string{"a", "b"} {
		go func() { ended <- h.Handle(t.Context(), made(id, 1)) }()
	}
	<-read
	<-read
	close(goOn)
	err := errors.Join(<-ended, <-ended)
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != "40001" || handlers.IsDead(err) {
		t.Fatalf("the runs ended with %v", err)
	}
	for _, id := range []string{"a", "b"} {
		must(t, h.Handle(t.Context(), made(id, 2)))
	}
	if n := count(t, db, "SELECT count(*) FROM effects"); n != 1 {
		t.Errorf("%d effects, want one", n)
	}
}

func TestOnce_refusesToRunWithinItself(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sql.DB) {
		other := withTables(t, openSQLite(t))
		err := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
			must(t, handlers.Once(other, effect).Handle(ctx, x))
			return handlers.Once(db, effect).Handle(ctx, x)
		}).Handle(t.Context(), made("a", 1))
		if err == nil || !strings.Contains(err.Error(), "within another on the same database") {
			t.Errorf("Handle = %v", err)
		}
		wantEffects(t, db, 0)
		wantEffects(t, other, 1)
	})
}
