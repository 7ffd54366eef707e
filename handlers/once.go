package handlers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Once makes a handler whose effect in a database happens once, however often its task runs. The handler begins a transaction,
// adds the row of the effect to the table onbeat_once (see [OnceTable]), calls fn, and commits. So the effect is there
// if the row is. A run that finds the row calls no fn, and has succeeded: an earlier run made the effect.
//
// The row decides, and not the time. A run whose lease was lost may still commit; then the run that repeats it finds the row.
// If both are under way, the second waits for the first: after ten seconds it fails with [ErrOnceBusy]. It also fails when its
// context ends, or when SQLite gives up: after its busy_timeout, or at once without one. An answer to COMMIT that was lost is a
// failed run too, and the next run looks.
//
// An effect is that of one enqueued task: see [OnceKey] for another choice. A retry repeats it, by hand too; a task that is
// enqueued anew under an ID that was used before, or a backfill, has an effect of its own. A slot has one, whoever pushes it.
//
// If fn returns an error, panics or ends its goroutine, nothing is committed. The same is true if ctx ends before the commit.
// Fn must write with tx alone, leave its Commit and Rollback to Once, and not keep it: while it is open, it holds a connection,
// and in SQLite the only right to write. Effects of fn outside of the database are not undone, and are repeated.
//
// It works with PostgreSQL and SQLite, by any driver of database/sql.
func Once(db *sql.DB, fn func(ctx context.Context, tx *sql.Tx, t *task.Task) error, opts ...OnceOption) TaskHandler {
	return &once{effects: newEffects(db, opts), fn: fn}
}

// OnceFunc is [Once] for [Typed]: it makes the function that Typed takes of one that takes a transaction too.
//
//	handlers.Typed(handlers.OnceFunc(db, func(ctx context.Context, tx *sql.Tx, inv Invoice) error { ... }))
func OnceFunc[T any](db *sql.DB, fn func(ctx context.Context, tx *sql.Tx, v T) error, opts ...OnceOption) func(ctx context.Context, v T) error {
	if db == nil || fn == nil {
		return nil // a Mux refuses it
	}
	e := newEffects(db, opts)
	return func(ctx context.Context, v T) error {
		t := FromContext(ctx)
		if t == nil {
			return errNoTask
		}
		return e.once(ctx, t, func(ctx context.Context, tx *sql.Tx) error { return fn(ctx, tx, v) })
	}
}

var (
	// ErrNoOnceTable is returned by [Once] if the table onbeat_once is not there. The run is retried like any other.
	ErrNoOnceTable = errors.New("no table onbeat_once (call handlers.OnceTable at start, or make the table of handlers.OnceSchema by your migrations)")
	// ErrOnceBusy is returned by [Once] if it waited for ten seconds to add the row, while another transaction held it: one of
	// another run of the same task, or in SQLite any that writes. If SQLite itself gives up, after its busy_timeout, the
	// error is that of the driver. The run is retried like any other.
	ErrOnceBusy = errors.New("another transaction holds the effect")

	errNoTask     = errors.New("the context has no task: OnceFunc belongs within Typed")
	errOnceNested = errors.New("a handler of Once runs within another on the same database: one would wait for the other")
)

type once struct {
	*effects
	fn func(ctx context.Context, tx *sql.Tx, t *task.Task) error
}

func (h *once) nilFunc() bool { return h.db == nil || h.fn == nil } // see isNil

// Handle implements [TaskHandler].
func (h *once) Handle(ctx context.Context, t *task.Task) error {
	return h.once(ctx, t, func(ctx context.Context, tx *sql.Tx) error { return h.fn(ctx, tx, t) })
}

// OnceOption changes how [Once] works.
type OnceOption func(*effects)

// OnceKey names the effect of a task in place of the ID of the task and the time at which it was enqueued. Tasks of the same
// type with the same key have one effect, however many there are: until the row is removed, see [OnceKeep]. The key has 1 to
// 512 bytes; any other makes the task [Dead].
func OnceKey(key func(*task.Task) string) OnceOption { return func(e *effects) { e.key = key } }

// OnceKeep is how long the row of an effect stays; zero or less means for ever. Default 30 days. It must be longer than a task
// may be retried or lie among the dead, and than a backup of Redis is old that may be restored: a run after that makes the
// effect again.
//
// The handler itself removes rows, of all types, when it has made its first effect and then each hundredth: a thousand at most.
func OnceKeep(d time.Duration) OnceOption { return func(e *effects) { e.keep = d } }

// OnceIsolation is the isolation of the transaction. Default: that of the database. A transaction that cannot be serialized is
// a failed run, and is retried like any other.
func OnceIsolation(level sql.IsolationLevel) OnceOption {
	return func(e *effects) { e.options.Isolation = level }
}

// OnceLog tells of runs that found their effect made (info), and of old rows that could not be removed (warn). Default: nothing
// is told.
func OnceLog(log zerolog.Logger) OnceOption { return func(e *effects) { e.log = log } }

// effects makes effects in a database, each once.
type effects struct {
	db      *sql.DB
	key     func(*task.Task) string
	keep    time.Duration
	options sql.TxOptions
	log     zerolog.Logger

	made atomic.Int64 // how many this process has made
}

func newEffects(db *sql.DB, opts []OnceOption) *effects {
	e := &effects{db: db, key: effectOf, keep: onceKept, log: zerolog.Nop()}
	for _, o := range opts {
		o(e)
	}
	return e
}

const (
	onceKept = 30 * 24 * time.Hour
	// onceWait is how long a run waits for another transaction. A run that hangs with its process, or behind a network that
	// is cut, must not keep the workers of the others for the whole timeout of the task.
	onceWait = 10 * time.Second
	// After each pruneEach effects, pruneMost rows may leave: many times what came.
	pruneEach, pruneMost = 100, 1000
	pruneTimeout         = 10 * time.Second
)

// insideKey is the key under which a context has the database of the Once that it is within.
type insideKey struct{}

// once makes the effect of a task, unless an earlier run has.
func (e *effects) once(ctx context.Context, t *task.Task, fn func(context.Context, *sql.Tx) error) error {
	if ctx.Value(insideKey{}) == e.db {
		return errOnceNested
	}
	row, err := e.row(ctx, t)
	if err != nil {
		return Dead(err)
	}
	made, err := e.commit(ctx, row, fn)
	if err != nil {
		return err
	}
	if !made {
		e.log.Info().Str("task", t.ID).Int("attempt", t.Attempt).Msg("an earlier run made the effect")
		return nil
	}
	if e.made.Add(1)%pruneEach == 1 {
		e.prune(ctx, row.claimed)
	}
	return nil
}

// commit makes the effect and its row in one transaction, and reports whether it did: no, if the row was there.
func (e *effects) commit(ctx context.Context, row effectRow, fn func(context.Context, *sql.Tx) error) (made bool, err error) {
	tx, err := e.db.BeginTx(ctx, &e.options)
	if err != nil {
		return false, fmt.Errorf("begin the transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // also if fn panics or ends its goroutine; after Commit it does nothing
	if first, err := row.insert(ctx, tx); err != nil || !first {
		return false, err
	}
	if err := fn(context.WithValue(ctx, insideKey{}, e.db), tx); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil { // it may have arrived all the same: the row tells the next run
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil { // database/sql was first, and has rolled back
			err = ctx.Err()
		}
		return false, fmt.Errorf("commit the transaction: %w", err)
	}
	return true, nil
}

// prune removes rows that were kept for long enough. The effect of the run is made, so an error does not fail the run: it is
// for the next one to remove more.
func (e *effects) prune(ctx context.Context, now int64) {
	ctx, done := context.WithTimeout(ctx, pruneTimeout)
	defer done()
	if _, err := e.db.ExecContext(ctx, pruneEffects, now, pruneMost); err != nil {
		e.log.Warn().Err(err).Msg("cannot remove old rows of onbeat_once")
	}
}
