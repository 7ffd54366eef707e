package handlers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/task"
)

// OnceSchema makes the table of [Once], in PostgreSQL and in SQLite, if it is not there. It is for teams whose own migrations
// make all tables; others call [OnceTable].
const OnceSchema = `CREATE TABLE IF NOT EXISTS onbeat_once (
  namespace text   NOT NULL,
  type      text   NOT NULL,
  effect    text   NOT NULL,
  task      text   NOT NULL,
  attempt   bigint NOT NULL,
  fence     bigint NOT NULL,
  instance  text   NOT NULL,
  claimed   bigint NOT NULL,
  until     bigint,
  PRIMARY KEY (namespace, type, effect)
);
CREATE INDEX IF NOT EXISTS onbeat_once_until ON onbeat_once (until);
`

// The statements of Once. Both databases know $1, in the order of the arguments.
const (
	insertEffect = `INSERT INTO onbeat_once (namespace, type, effect, task, attempt, fence, instance, claimed, until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`

	pruneEffects = `DELETE FROM onbeat_once WHERE (namespace, type, effect) IN
(SELECT namespace, type, effect FROM onbeat_once WHERE until < $1 ORDER BY until LIMIT $2)`

	probeEffects = `SELECT namespace, type, effect, task, attempt, fence, instance, claimed, until FROM onbeat_once WHERE 1 = 0`
)

// OnceTable makes the table of [Once] if it is not there. Call it at start, before the dispatcher runs. Any number of processes
// may call it at once. If the table is there, it needs no right to make one.
func OnceTable(ctx context.Context, db *sql.DB) error {
	const tries = 5
	var err error
	for range tries {
		if err = makeOnceTable(ctx, db); err == nil {
			return nil
		}
		select { // two that make the same table at once: PostgreSQL refuses one of them
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("make the table onbeat_once: %w", ctx.Err())
		}
	}
	return fmt.Errorf("make the table onbeat_once: %w", err)
}

func makeOnceTable(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, probeEffects)
	if err == nil || !lacksTable(err) {
		return err
	}
	_, err = db.ExecContext(ctx, OnceSchema)
	return err
}

// lacksTable reports whether a statement failed because the table is not there. The drivers of PostgreSQL tell the state of an
// error; the driver of SQLite has only its text.
func lacksTable(err error) bool {
	const undefinedTable = "42P01"
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState() == undefinedTable
	}
	return strings.Contains(err.Error(), "no such table: onbeat_once")
}

// effectRow is the row of an effect: its name, and which run made it.
type effectRow struct {
	namespace string
	effect    string
	task      *task.Task
	claimed   int64 // unix ms, by the clock of Redis
	until     sql.NullInt64
}

func (e *effects) row(ctx context.Context, t *task.Task) (effectRow, error) {
	name := e.key(t)
	if name == "" || len(name) > maxEffect {
		return effectRow{}, &task.FieldError{
			Field: "effect", Reason: fmt.Sprintf("a key of %d bytes", len(name)), Hint: fmt.Sprintf("1 to %d bytes; see handlers.OnceKey", maxEffect),
		}
	}
	at := t.Claimed
	if at.IsZero() { // outside of a dispatcher
		at = time.Now()
	}
	r := effectRow{namespace: Namespace(ctx), effect: name, task: t, claimed: at.UnixMilli()}
	if e.keep > 0 {
		r.until = sql.NullInt64{Int64: at.Add(e.keep).UnixMilli(), Valid: true}
	}
	return r, nil
}

// maxEffect is the longest name of an effect in bytes: an ID and a time fit, and an index of PostgreSQL takes it.
const maxEffect = 512

// effectOf names the effect of a task by its ID and by when it was enqueued. The ID may be used again when the task has left,
// and then means another effect. A slot that was pushed has only its ID, which has the slot's time.
func effectOf(t *task.Task) string {
	if t.ID == "" || t.Created.IsZero() {
		return t.ID
	}
	return t.ID + " " + strconv.FormatInt(t.Created.UnixMilli(), 10)
}

// insert adds the row. It returns false if the row is there. While a transaction of another run has added it and is open, insert
// waits for that.
func (r *effectRow) insert(ctx context.Context, tx *sql.Tx) (first bool, err error) {
	wait, done := context.WithTimeout(ctx, onceWait)
	defer done()
	t := r.task
	result, err := tx.ExecContext(wait, insertEffect, r.namespace, t.Type, r.effect, t.ID, t.Attempt, t.Fence, t.Instance, r.claimed, r.until)
	switch {
	case err == nil:
	case lacksTable(err):
		return false, fmt.Errorf("%w: %w", ErrNoOnceTable, err)
	case ctx.Err() == nil && wait.Err() != nil:
		return false, fmt.Errorf("%w: for %v: %w", ErrOnceBusy, onceWait, err)
	default:
		return false, fmt.Errorf("add the effect to onbeat_once: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("add the effect to onbeat_once: %w", err)
	}
	return n == 1, nil
}
