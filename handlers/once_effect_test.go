package handlers_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestOnceKey_namesTheEffect(t *testing.T) {
	t.Parallel()
	db := withTables(t, openSQLite(t))
	h := handlers.Once(db, effect, handlers.OnceKey(func(x *task.Task) string { return string(x.Payload) }))
	handle := func(id, typ, payload string) error {
		x := made(id, 1)
		x.Type, x.Payload = typ, []byte(payload)
		return h.Handle(t.Context(), x)
	}
	must(t, handle("a", "charge", "invoice 42"))
	must(t, handle("b", "charge", "invoice 42"))
	wantEffects(t, db, 1)
	must(t, handle("b", "mail", "invoice 42"))
	wantEffects(t, db, 2)
	for _, key := range []string{"", strings.Repeat("x", 513)} {
		if err := handle("c", "charge", key); !handlers.IsDead(err) || !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
	must(t, handle("c", "charge", strings.Repeat("x", 512)))
	wantEffects(t, db, 3)
}

func TestOnceFunc_isDecodedByTyped(t *testing.T) {
	t.Parallel()
	db := withTables(t, openSQLite(t))
	book := func(ctx context.Context, tx *sql.Tx, inv Invoice) error {
		if inv.Number != 42 {
			t.Errorf("got %+v", inv)
		}
		return effect(ctx, tx, handlers.FromContext(ctx))
	}
	h := handlers.Typed(handlers.OnceFunc(db, book), handlers.Lenient)
	x := made("a", 1)
	for _, payload := range []string{`{"number":42}`, `{"number":42,"currency":"EUR"}`} {
		x.Payload = []byte(payload)
		must(t, h.Handle(t.Context(), x))
	}
	wantEffects(t, db, 1)
	if c, ok := handlers.As[handlers.PayloadChecker](h); !ok || c.CheckPayload([]byte(`{"number":"x"}`)) == nil {
		t.Error("nothing checks the payload")
	}
	if err := handlers.OnceFunc(db, book)(t.Context(), Invoice{42}); err == nil {
		t.Error("it ran without a task")
	}
	for name, h := range map[string]handlers.TaskHandler{
		"Once without a function": handlers.Once(db, nil), "Once without a database": handlers.Once(nil, effect),
		"OnceFunc without a function": handlers.Typed(handlers.OnceFunc[Invoice](db, nil)), "OnceFunc without a database": handlers.Typed(handlers.OnceFunc(nil, book)),
	} {
		if err := handlers.NewMux().Handle("charge", h); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// An answer to COMMIT that was lost says nothing. The run failed, and the next one looks.
func TestOnce_bearsALostAnswerToCommit(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"COMMIT arrived": true, "COMMIT was lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lossy{source: sqliteFile(t), arrives: arrives}
			db := sql.OpenDB(l)
			defer db.Close()
			withTables(t, db)
			h := handlers.Once(db, effect)
			l.loses.Store(true)
			if err := h.Handle(t.Context(), made("a", 1)); !errors.Is(err, errLost) || handlers.IsDead(err) {
				t.Errorf("Handle = %v", err)
			}
			if n := count(t, db, "SELECT count(*) FROM effects"); (n == 1) != arrives {
				t.Errorf("%d effects", n)
			}
			must(t, h.Handle(t.Context(), made("a", 2)))
			wantEffects(t, db, 1)
		})
	}
}

var errLost = errors.New("the connection was lost")

// lossy is SQLite behind a connection that loses the next COMMIT, or its answer.
type lossy struct {
	source  string
	arrives bool
	loses   atomic.Bool
}

func (l *lossy) Driver() driver.Driver {
	db, _ := sql.Open("sqlite", l.source)
	defer db.Close()
	return db.Driver()
}

func (l *lossy) Connect(context.Context) (driver.Conn, error) {
	c, err := l.Driver().Open(l.source)
	if err != nil {
		return nil, err
	}
	return lossyConn{c.(sqliteConn), l}, nil
}

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type lossyConn struct {
	sqliteConn
	*lossy
}

func (c lossyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, opts)
	return lossyTx{tx, c.lossy}, err
}

type lossyTx struct {
	driver.Tx
	*lossy
}

func (tx lossyTx) Commit() error {
	if !tx.loses.Swap(false) {
		return tx.Tx.Commit()
	}
	if tx.arrives {
		return errors.Join(errLost, tx.Tx.Commit())
	}
	return errors.Join(errLost, tx.Tx.Rollback())
}

func TestOnceLog_tellsOfRepeatsAndOfRowsThatStay(t *testing.T) {
	t.Parallel()
	db := withTables(t, openSQLite(t))
	var out bytes.Buffer
	h := handlers.Once(db, func(ctx context.Context, tx *sql.Tx, x *task.Task) error {
		_, err := tx.ExecContext(ctx, "CREATE TRIGGER stays BEFORE DELETE ON onbeat_once BEGIN SELECT RAISE(ABORT, 'it stays'); END")
		return errors.Join(err, effect(ctx, tx, x))
	}, handlers.OnceLog(zerolog.New(&out)))
	execute(t, db, "INSERT INTO onbeat_once VALUES ('n', 'y', 'e', 'x', 1, 1, 'i', 0, 1)")
	for attempt := range 2 {
		must(t, h.Handle(t.Context(), made("a", 1+attempt)))
	}
	want := `{"level":"warn","error":"constraint failed: it stays (1811)","message":"cannot remove old rows of onbeat_once"}
{"level":"info","task":"a","attempt":2,"message":"an earlier run made the effect"}
`
	if got := out.String(); got != want {
		t.Errorf("it told\n%swant\n%s", got, want)
	}
}

// The page for teams with their own migrations shows the schema as it is.
func TestOnceSchema_isInTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/effects.md")
	must(t, err)
	if !strings.Contains(string(page), "```sql\n"+handlers.OnceSchema+"```\n") {
		t.Error("docs/effects.md has another schema")
	}
}
