package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/database"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// maxError bounds the text of an error in the table, in bytes.
const maxError = 1 << 10

// batch is what one transaction deals with.
type batch struct {
	m       *Mover
	rows    []row // to be removed
	refused []refusal
	stuck   []refusal // rows that stay as they are for now, and why
}

// judge sorts rows by their results. A row for which Redis has no room, because the limit of lanes is reached, has its turn later.
func (b *batch) judge(results []producer.Result) {
	kept := b.rows[:0:0]
	for i, r := range b.rows {
		var taken *task.Refused
		if err := results[i].Err; err != nil && !errors.As(err, &taken) {
			b.stuck = append(b.stuck, refusal{r, err})
			continue
		}
		r.added = taken == nil || taken.By == "moved"
		kept = append(kept, r)
	}
	b.rows = kept
}

// isCulprit reports whether a failure is that of one row, so that the row must not hold up those behind it. A batch that fails for
// an unknown reason is tried again with fewer rows, down to one.
func (b *batch) isCulprit(failure error, rows []row) bool {
	if passing(failure) {
		return false
	}
	alone := len(rows) == 1
	b.m.most = max(len(rows)/2, 1)
	return alone
}

// accuse passes over a row that failed alone for an unknown reason. It refuses the row if it failed before and another was moved
// since: so the reason is the row, and not that Redis fails for a while. It returns the failure if the row is not the first one in a
// series, so that the mover waits: then Redis is more likely to be the reason.
func (b *batch) accuse(r refusal) (failure error) {
	if b.m.doubts.guilty(r.id) {
		b.refused = append(b.refused, r)
		return nil
	}
	b.stuck = append(b.stuck, r)
	if b.m.doubts.series == 1 {
		return nil
	}
	return r.err
}

// passing reports whether a failure says nothing of the tasks: Redis is away, full or refuses this client, or time is up.
func passing(err error) bool {
	for _, known := range []error{
		task.ErrFull, task.ErrDenied, store.ErrWrongType, queue.ErrLate, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return store.Retryable(err)
}

// commit removes the rows whose tasks are dealt with, and notes why others were refused. A row for which the database does neither
// stays, and the others leave.
func (b *batch) commit(ctx context.Context, tx *sql.Tx) error {
	if err := b.remove(ctx, tx); err != nil {
		return fmt.Errorf("remove moved rows: %w", err)
	}
	if err := b.note(ctx, tx); err != nil {
		return fmt.Errorf("note refused rows: %w", err)
	}
	if err := tx.Commit(); err != nil {
		b.blame(ctx, err)
		return fmt.Errorf("commit moved rows: %w", err)
	}
	return nil
}

// remove removes rows: all at once, or one by one if one of them stays.
func (b *batch) remove(ctx context.Context, tx *sql.Tx) error {
	if len(b.rows) == 0 {
		return nil
	}
	ids := make([]int64, len(b.rows))
	for i, r := range b.rows {
		ids[i] = r.id
	}
	refused, err := try(ctx, tx, b.m.d.remove, listed(ids))
	if refused == nil || err != nil {
		return err
	}
	removed := b.rows[:0:0]
	for _, r := range b.rows {
		refused, err := try(ctx, tx, b.m.d.remove, listed([]int64{r.id}))
		switch {
		case err != nil:
			return err
		case refused != nil:
			b.stuck = append(b.stuck, refusal{r, refused})
		default:
			removed = append(removed, r)
		}
	}
	b.rows = removed
	return nil
}

// note writes the errors of the refused rows. A database whose encoding lacks a character of an error gets its ASCII.
func (b *batch) note(ctx context.Context, tx *sql.Tx) error {
	noted := b.refused[:0:0]
	for _, r := range b.refused {
		said := database.Text(r.err.Error(), maxError)
		refused, err := try(ctx, tx, b.m.d.refuse, r.id, said)
		if refused != nil && err == nil {
			refused, err = try(ctx, tx, b.m.d.refuse, r.id, strconv.QuoteToASCII(said))
		}
		switch {
		case err != nil:
			return err
		case refused != nil:
			b.stuck = append(b.stuck, refusal{r.row, fmt.Errorf("%w; the error to note was: %w", refused, r.err)})
		default:
			noted = append(noted, r)
		}
	}
	b.refused = noted
	return nil
}

// try runs a statement. If the database refuses it, the transaction goes on without it. Err ends the transaction.
func try(ctx context.Context, tx *sql.Tx, statement string, args ...any) (refused, err error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT onbeat_row"); err != nil {
		return nil, err
	}
	_, refused = tx.ExecContext(ctx, statement, args...)
	if refused != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT onbeat_row"); err != nil {
			return nil, refused
		}
	}
	_, err = tx.ExecContext(ctx, "RELEASE SAVEPOINT onbeat_row")
	return refused, err
}

// blame deals with a commit that failed for what the rows hold: a constraint that the database checks at the end. Fewer rows come next,
// down to the one that is to blame.
func (b *batch) blame(ctx context.Context, err error) {
	n := len(b.rows) + len(b.refused)
	if n == 0 || !breaksConstraint(err) {
		return
	}
	if b.m.most = max(n/2, 1); n > 1 {
		return
	}
	for _, r := range b.rows {
		b.stuck = append(b.stuck, refusal{r, err})
	}
	for _, r := range b.refused {
		b.stuck = append(b.stuck, refusal{r.row, err})
	}
	b.passOver(ctx)
}

// tell lets the marks go, and tells of the results, also at the end of a batch that took as long as it may. A failure here is no loss:
// the rows are gone.
func (b *batch) tell(ctx context.Context) {
	m := b.m
	ctx, done := m.bounded(ctx)
	defer done()
	if len(b.rows)+len(b.refused) > 0 {
		m.most = min(2*m.most, maxBatch)
	}
	m.doubts.movedOn(b.rows)
	moved, n := make([][]string, len(m.parts)), 0
	for _, r := range b.rows {
		if r.added {
			moved[r.part] = append(moved[r.part], r.mark)
			n++
		}
	}
	for part, marks := range moved {
		if len(marks) > 0 {
			_ = m.parts[part].q.Moved(ctx, marks)
		}
	}
	b.count(Moved, n)
	b.count(Duplicate, len(b.rows)-n)
	b.count(Refused, len(b.refused))
	if n := len(b.refused); n > 0 {
		id, typ, why := b.refused[0].words()
		m.log.Warn().Int("tasks", n).Str("task", id).Str("error", why).
			Msg("refused tasks of the outbox: their rows stay in the table, each with its error")
		_ = m.q.Tell(ctx, "outbox refused", "tasks", strconv.Itoa(n), "task", id, "type", typ, "error", why)
	}
	b.passOver(ctx)
}

// passOver leaves the rows alone for a while that stay as they are for now.
func (b *batch) passOver(ctx context.Context) {
	m, n := b.m, len(b.stuck)
	if n == 0 {
		return
	}
	for _, r := range b.stuck {
		m.stuck.pass(r.id, time.Now())
	}
	id, typ, why := b.stuck[0].words()
	m.log.Warn().Int("tasks", n).Str("task", id).Str("error", why).
		Msg("cannot deal with rows of the outbox: passing over them for a minute")
	_ = m.q.Tell(ctx, "outbox stuck", "tasks", strconv.Itoa(n), "task", id, "type", typ, "error", why)
	b.count(Stuck, n)
}

// words are the texts that are told of a row: short ones, whatever the row has.
func (r *refusal) words() (id, typ, why string) {
	return database.Text(r.task.ID, task.MaxIDLen), database.Text(r.task.Type, task.MaxNameLen), database.Text(r.err.Error(), maxError)
}

func (b *batch) count(result string, rows int) {
	if b.m.observer != nil && rows > 0 {
		b.m.observer.OutboxMoved(result, rows)
	}
}
