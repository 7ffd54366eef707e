package outbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// A task is enqueued if the caller's transaction commits, and only then.
func TestAdd_isOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		_, err := w.db.ExecContext(t.Context(), "CREATE TABLE orders (id integer)")
		w.must(err)
		for i, commit := range []bool{true, false, true} {
			tx, err := w.db.BeginTx(t.Context(), nil)
			w.must(err)
			_, err = tx.ExecContext(t.Context(), "INSERT INTO orders VALUES ($1)", i)
			w.must(err)
			a := task.New("job", map[string]int{"order": i})
			w.must(w.box.Add(t.Context(), tx, a))
			if a.ID == "" {
				t.Error("the task has no ID")
			}
			if commit {
				w.must(tx.Commit())
			} else {
				w.must(tx.Rollback())
			}
		}
		w.drain(w.mover())
		got := w.records()
		if len(got) != 2 || w.rows() != 0 || w.count("SELECT count(*) FROM orders") != 2 {
			t.Errorf("%d tasks, %d rows stay", len(got), w.rows())
		}
		for _, a := range got {
			if p := string(a.Payload); a.Keep >= 0 || p != `{"order":0}` && p != `{"order":2}` {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestAdd_saysThatTheTableIsNotThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		_, err := w.db.ExecContext(t.Context(), "DROP TABLE onbeat_outbox")
		w.must(err)
		if err := w.box.Add(t.Context(), w.db, task.New("job", nil)); !errors.Is(err, ErrNoTable) || !strings.Contains(err.Error(), "outbox.Migrate") {
			t.Errorf("%v", err)
		}
	})
}

func TestAdd_takesATransactionOfPgx(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testpostgres.Database(t), testredis.Client(t))
	for _, commit := range []bool{false, true} {
		tx, done := w.pgxTx()
		w.must(w.box.Add(t.Context(), Pgx(tx), jobs("x", 300)...))
		if commit {
			w.must(tx.Commit(t.Context()))
		} else {
			w.must(tx.Rollback(t.Context()))
		}
		done()
	}
	w.drain(w.mover())
	if n := len(w.records()); n != 300 {
		t.Errorf("%d tasks", n)
	}
}

// All that a caller says of a task comes to Redis, also what a record does not keep.
func TestAdd_keepsAllOfATask(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		in := &task.Task{
			ID: "ünï", Type: "job", Payload: []byte("\x00\xff"), Secret: []string{"a"}, Queue: "q", Priority: task.High, Due: time.UnixMilli(4102444800000),
			MaxAttempts: 3, Backoff: task.Backoff{Base: time.Second, Cap: time.Minute}, Timeout: time.Minute, Keep: time.Hour,
			Key: "k", KeyLimit: 2, Overlap: task.Skip, UniqueKey: "u", UniqueFor: time.Hour,
		}
		w.add(in, task.New("job", nil, task.ID("second"), task.Unique("u", 0)))
		w.drain(w.mover())
		out := w.records()["ünï"]
		if out == nil || !bytes.Equal(out.Payload, in.Payload) || out.Queue != "q" || out.Priority != task.High || out.MaxAttempts != 3 ||
			out.Backoff != in.Backoff || out.Timeout != time.Minute || out.Keep != time.Hour || out.Key != "k" || out.KeyLimit != 2 ||
			out.Overlap != task.Skip || len(out.Secret) != 1 || time.Since(out.Created) > time.Hour {
			t.Errorf("%+v", out)
		}
		if due := w.rdb.ZScore(t.Context(), w.keys.Due(queue.LaneOf(in)), in.ID).Val(); int64(due) != in.Due.UnixMilli() {
			t.Errorf("due %v", due)
		}
		if ttl := w.rdb.PTTL(t.Context(), w.keys.Unique("u")).Val(); ttl < 59*time.Minute || ttl > time.Hour {
			t.Errorf("the unique key is held for %s", ttl)
		}
		if w.seen.of(Moved) != 1 || w.seen.of(Duplicate) != 1 || w.rows() != 0 {
			t.Errorf("%v, %d rows", w.seen.results, w.rows())
		}
	})
}

func TestAdd_refusesAnInvalidTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	w.box.Check = func(t *task.Task) error {
		if string(t.Payload) == "bad" {
			return &task.FieldError{Field: "payload", Reason: "bad"}
		}
		return nil
	}
	for name, bad := range map[string]*task.Task{
		"nil": nil, "no type": {}, "a slot's ID": task.New("job", nil, task.ID("nightly@1700000000000")), "a bad payload": task.New("job", []byte("bad")),
		"too large": task.New("job", bytes.Repeat([]byte("x"), 2<<20)),
	} {
		err := w.box.Add(t.Context(), w.db, task.New("job", nil), bad)
		var batch *producer.BatchError
		if !errors.Is(err, task.ErrInvalid) || !errors.As(err, &batch) || batch.Index != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// With keys, no payload is readable in the table, nor in Redis.
func TestAdd_encryptsPayloads(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		keys := w.sealed()
		w.add(task.New("job", "the secret", task.ID("x")))
		var record []byte
		w.must(w.db.QueryRowContext(t.Context(), "SELECT record FROM onbeat_outbox").Scan(&record))
		if bytes.Contains(record, []byte("the secret")) {
			t.Errorf("the table has %q", record)
		}
		checked := ""
		w.drain(w.mover(func(c *MoverConfig) {
			c.Producer = w.producer(producer.Config{Check: func(t *task.Task) error { checked = string(t.Payload); return nil }})
		}))
		out := w.records()["x"]
		if out == nil || out.Payload != nil || keys.OpenTask(out) != nil || string(out.Payload) != `"the secret"` || checked != `"the secret"` {
			t.Errorf("%+v, checked %q", out, checked)
		}
		// A mover without the key, or with another one under its ID, moves it as it is, and checks nothing of what it cannot read.
		other, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{{ID: "k", Secret: bytes.Repeat([]byte{1}, task.EncryptionKeyBytes)}}}, w.ns)
		w.must(err)
		for id, here := range map[string]*seal.Keys{"none": nil, "other": other} {
			w.add(task.New("job", "the secret", task.ID(id)))
			w.q.SealWith(here)
			w.drain(w.mover(func(c *MoverConfig) {
				c.Producer = w.producer(producer.Config{Check: func(t *task.Task) error { return errors.New("checked") }})
			}))
			if out := w.records()[id]; out == nil || keys.OpenTask(out) != nil || string(out.Payload) != `"the secret"` {
				t.Errorf("%s: %+v", id, out)
			}
		}
	})
}

// Two namespaces share a table. A row that names none goes to the one that comes first.
func TestAdd_namesANamespace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.must(Add(t.Context(), w.db, jobs("free", 3)...))
		w.must((&Outbox{Namespace: "another"}).Add(t.Context(), w.db, jobs("other", 3)...))
		w.add(jobs("own", 3)...)
		w.drain(w.mover())
		if n := len(w.records()); n != 6 || w.rows() != 3 || w.count("SELECT count(*) FROM onbeat_outbox WHERE namespace = 'another'") != 3 {
			t.Errorf("%d tasks, %d rows", n, w.rows())
		}
	})
}

func TestMigrate_anyNumberOfTimesAtOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{onSQLite(t), testpostgres.Database(t)} {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				db, err := SQL{URL: url}.Open()
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if err := errors.Join(Migrate(context.Background(), db.DB), Migrate(context.Background(), db.DB)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// A user who may not make tables uses one that is there.
func TestMigrate_needsNoRightsWhereTheTableIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testpostgres.Database(t), testredis.Client(t))
	for _, s := range []string{
		"DROP ROLE IF EXISTS shop_outbox", "CREATE ROLE shop_outbox LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON onbeat_outbox TO shop_outbox",
	} {
		_, err := w.db.ExecContext(t.Context(), s)
		w.must(err)
	}
	t.Cleanup(func() {
		_, _ = w.db.ExecContext(context.Background(), "DROP OWNED BY shop_outbox; DROP ROLE shop_outbox")
	})
	w.at.URL = strings.Replace(w.at.URL, "test@", "shop_outbox@", 1)
	m := w.mover()
	w.must(w.box.Add(t.Context(), m.db, jobs("x", 3)...))
	w.drain(m)
	if n := len(w.records()); n != 3 {
		t.Errorf("%d tasks", n)
	}
}

// Teams with their own migrations take the statements from the page.
func TestPage_hasTheStatementsThatMakeTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/outbox.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"PostgreSQL": postgresTable, "SQLite": sqliteTable} {
		if !strings.Contains(string(page), "```sql\n"+table+"```\n") {
			t.Errorf("docs/outbox.md does not have the table of %s as it is", name)
		}
	}
}

// A sealed payload opens in its own namespace only, so keys need a namespace.
func TestOutbox_encryptsForANamespace(t *testing.T) {
	t.Parallel()
	o := &Outbox{Encryption: task.Encryption{Keys: []task.EncryptionKey{{ID: "k", Secret: make([]byte, task.EncryptionKeyBytes)}}}}
	err := o.Add(t.Context(), nil, task.New("a", nil))
	if refused, ok := errors.AsType[*task.FieldError](err); !ok || refused.Field != "namespace" {
		t.Errorf("%v", err)
	}
}
