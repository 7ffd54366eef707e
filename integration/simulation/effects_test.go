package simulation

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// effects is the database that handlers write to within handlers.Once: a real one, in real time. The database does not
// fail, but the processes that write to it do.
type effects struct {
	t    testing.TB
	db   *sql.DB
	once handlers.TaskHandler
}

func openEffects(t testing.TB) *effects {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "effects.db")+"?_pragma=synchronous(0)&_pragma=journal_mode(memory)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // one that waits for another does so in virtual time
	e := &effects{t: t, db: db, once: handlers.Once(db, addEffect)}
	if err := handlers.OnceTable(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(context.Background(), "CREATE TABLE effects (task text NOT NULL, created bigint NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *effects) close() {
	if err := e.db.Close(); err != nil {
		e.t.Error(err)
	}
}

func addEffect(ctx context.Context, tx *sql.Tx, t *task.Task) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (task, created) VALUES ($1, $2)", t.ID, t.Created.UnixMilli())
	return err
}

// made returns how many effects each task had. A task that was enqueued anew under its ID is counted anew, and the largest
// count of an ID is returned.
func (e *effects) made() map[string]int {
	rows, err := e.db.QueryContext(context.Background(), "SELECT task, count(*) FROM effects GROUP BY task, created ORDER BY count(*)")
	if err != nil {
		e.t.Fatal(err)
	}
	defer rows.Close()
	made := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			e.t.Fatal(err)
		}
		made[id] = n
	}
	if err := rows.Err(); err != nil {
		e.t.Fatal(err)
	}
	return made
}

// judgeEffects: a task that ended well had its effect, and none had it twice, however often it ran.
func (w *world) judgeEffects() {
	if w.effects == nil {
		return
	}
	made := w.effects.made()
	for id, n := range made {
		if n > 1 {
			w.blame("twice", "%s had its effect %d times", id, n)
		}
	}
	for _, r := range w.runs {
		if r.does.Effect && r.how == endGood && made[r.duty.id] == 0 {
			w.blame("no effect", "%s ended well on %s, without its effect", r.duty.id, r.node.plan.Name)
		}
	}
}
