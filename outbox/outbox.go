package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
	"go.opentelemetry.io/otel/trace"
)

// Execer runs a statement: a *sql.Tx, or a *sql.DB or *sql.Conn outside a transaction. [Pgx] makes one of a pgx.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Outbox adds tasks to the table. The zero value is ready to use; Dispatcher.Outbox returns one that knows the namespace, the handlers
// and the keys of its dispatcher.
type Outbox struct {
	// Namespace is the one whose instances move the tasks to their Redis. Empty: that of the mover that comes first. So name it if
	// several namespaces share the table.
	Namespace string
	// Limits bound what a task may hold.
	Limits task.Limits
	// Check, if set, refuses a payload that the type's handler could not use: see [producer.Config].
	Check func(t *task.Task) error
	// Secret are, by type, the secret paths of payloads.
	Secret map[string][]string
	// Encryption encrypts payloads, in the table as in Redis. It needs the Namespace. Without keys payloads stay as they are.
	Encryption task.Encryption
	// NewID, if set, makes the ID of a task that has none, or refuses a task: in a namespace that is split an ID says where its task lies.
	NewID func(t *task.Task, now time.Time) (string, error)
	// TracerProvider makes a span of each call that adds tasks. Nil: none.
	TracerProvider trace.TracerProvider

	once sync.Once
	keys *seal.Keys
	bad  error
}

// Add writes tasks into the table, by a zero [Outbox].
func Add(ctx context.Context, tx Execer, tasks ...*task.Task) error {
	return new(Outbox).Add(ctx, tx, tasks...)
}

// Add writes tasks into the table. They are enqueued soon after tx commits, and never if it does not. Add sets the ID and the time
// of creation of each task that has none, as Enqueue does. So the same task added again, in another transaction, is one task while
// the first is known, and one effect of handlers.Once for as long as that keeps its row.
//
// The delay of a task counts from here, by the clock of the database, the window of its unique key from when it is moved. A task
// whose ID or unique key is taken by then is dropped, as the caller asked: no caller waits for the answer any more.
//
// The error matches [task.ErrInvalid], by a [*producer.BatchError], if a task is invalid: nothing was written. After any other error
// the caller must roll tx back. It matches [ErrNoTable] if the table is not there.
func (o *Outbox) Add(ctx context.Context, tx Execer, tasks ...*task.Task) error {
	if o.once.Do(o.takeKeys); o.bad != nil {
		return o.bad
	}
	for i, t := range tasks {
		if err := o.check(t); err != nil {
			return &producer.BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	if o.TracerProvider == nil || len(tasks) == 0 {
		return o.insert(ctx, tx, tasks)
	}
	ctx, span := tracing.New(o.TracerProvider, o.Namespace).Enqueue(ctx, tasks)
	err := o.insert(ctx, tx, tasks)
	span.End(err)
	return err
}

func (o *Outbox) check(t *task.Task) error {
	if err := producer.CheckNames(t); err != nil {
		return err
	}
	err := t.Validate(o.Limits)
	if err == nil && o.NewID != nil {
		_, err = o.NewID(t, time.Now())
	}
	if err != nil || o.Check == nil {
		return err
	}
	return o.Check(&task.Task{Type: t.Type, Payload: t.Payload, Secret: secret.Join(t.Secret, o.Secret[t.Type])})
}

// maxInsert is how many rows one statement adds. A statement adds a power of two of them, so that there are few different ones for
// a driver to prepare.
const maxInsert = 128

func (o *Outbox) insert(ctx context.Context, tx Execer, tasks []*task.Task) error {
	now := time.Now()
	for len(tasks) > 0 {
		n := 1 << (bits.Len(uint(min(len(tasks), maxInsert))) - 1)
		args := make([]any, 0, n*columns)
		for _, t := range tasks[:n] {
			args = o.row(args, t, now)
		}
		if _, err := tx.ExecContext(ctx, insertion(n), args...); err != nil {
			if lacksTable(err) {
				err = fmt.Errorf("%w: %w", ErrNoTable, err)
			}
			return fmt.Errorf("add to the outbox: %w", err)
		}
		tasks = tasks[n:]
	}
	return nil
}

// takeKeys makes the keys. Without a namespace no instance could open what they seal.
func (o *Outbox) takeKeys() {
	if o.Namespace == "" && len(o.Encryption.Keys) > 0 {
		o.bad = &task.FieldError{Field: "namespace", Reason: "missing: encryption needs it", Hint: "name the namespace whose instances move the tasks"}
		return
	}
	o.keys, o.bad = seal.New(o.Encryption, o.Namespace)
	o.bad = field.In("encryption", o.bad)
}

// columns is how many columns Add fills.
const columns = 8

// insertion is the statement that adds n rows. PostgreSQL and SQLite read it alike.
func insertion(n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO onbeat_outbox (namespace, task, type, record, mark, delay_ms, unique_key, unique_ms) VALUES ")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		for c := range columns {
			fmt.Fprintf(&b, "%c$%d", "(,,,,,,,"[c], i*columns+c+1)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// row appends the columns of a task: its record, and the fields that a record does not keep.
func (o *Outbox) row(args []any, t *task.Task, now time.Time) []any {
	mark := task.NewID(now)
	if t.ID == "" {
		if o.NewID != nil {
			mark, _ = o.NewID(t, now) // check has asked already
		}
		t.ID = mark
	}
	if t.Created.IsZero() {
		t.Created = now.Truncate(time.Millisecond)
	}
	c := *t
	if c.ID == mark && c.Keep == 0 {
		c.Keep = -1 // not an ID of the caller's choice, but the mover could not tell
	}
	c.Secret = secret.Join(c.Secret, o.Secret[c.Type])
	o.keys.SealTask(&c)
	delay := int64(0)
	if c.Due.IsZero() {
		delay = ceilMs(c.Delay)
	}
	unique := int64(0)
	if c.UniqueKey != "" {
		unique = ceilMs(c.UniqueFor)
	}
	return append(args, o.Namespace, c.ID, c.Type, task.Encode(nil, &c), mark, delay, c.UniqueKey, unique)
}

// ceilMs returns a duration in ms, rounded up: nothing may run early.
func ceilMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// PgxTx is a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool, and T the pgconn.CommandTag that it returns. So this package needs no pgx.
type PgxTx[T PgxTag] interface {
	Exec(ctx context.Context, sql string, arguments ...any) (T, error)
}

// PgxTag is a pgconn.CommandTag.
type PgxTag interface{ RowsAffected() int64 }

// Pgx lets Add write in a transaction of pgx: outbox.Pgx(tx).
func Pgx[T PgxTag](tx PgxTx[T]) Execer { return pgxExecer[T]{tx} }

type pgxExecer[T PgxTag] struct{ tx PgxTx[T] }

// ExecContext implements [Execer].
func (e pgxExecer[T]) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := e.tx.Exec(ctx, query, args...)
	return pgxResult{tag}, err
}

type pgxResult struct{ tag PgxTag }

// LastInsertId implements [sql.Result].
func (pgxResult) LastInsertId() (int64, error) { return 0, errNoLastID }

// RowsAffected implements [sql.Result].
func (r pgxResult) RowsAffected() (int64, error) { return r.tag.RowsAffected(), nil }

var errNoLastID = errors.New("PostgreSQL has no last inserted ID")
