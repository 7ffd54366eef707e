package outbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// The error of a handler may have any bytes: it names a value of the payload.
func TestMover_notesAnErrorThatPostgreSQLWouldNotTake(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.add(append(jobs("a", 2), task.New("bad", nil, task.ID("bad")), task.New("job", nil, task.ID("last")))...)
		m := w.mover(func(c *MoverConfig) {
			c.Producer = w.producer(producer.Config{Check: func(t *task.Task) error {
				if t.Type == "bad" {
					return errors.New("no such colour: \x00\xff")
				}
				return nil
			}})
		})
		w.drain(m)
		if len(w.records()) != 3 || w.rows() != 1 || w.seen.of(Moved) != 3 || w.seen.of(Refused) != 1 {
			t.Errorf("%d tasks, %d rows, %v", len(w.records()), w.rows(), w.seen.results)
		}
		if s, err := Look(t.Context(), w.at, w.ns); err != nil || s.Refused != 1 || !strings.Contains(s.Why, "no such colour") {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// A check with a bug ends no mover: its process would end with it, and each that follows.
func TestMover_refusesARowWhoseCheckPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	w.add(task.New("bad", map[string]string{"key": "hush-hush"}, task.ID("bad"), task.Secret("key")), task.New("job", nil, task.ID("last")))
	w.drain(w.mover(func(c *MoverConfig) {
		c.Producer = w.producer(producer.Config{Check: func(t *task.Task) error {
			if t.Type == "bad" {
				panic(string(t.Payload))
			}
			return nil
		}})
	}))
	if len(w.records()) != 1 || w.seen.of(Moved) != 1 || w.seen.of(Refused) != 1 {
		t.Errorf("%d tasks, %v", len(w.records()), w.seen.results)
	}
	if s, err := Look(t.Context(), w.at, w.ns); err != nil || s.Refused != 1 || !strings.Contains(s.Why, "bad") || strings.Contains(s.Why, "hush") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A database of another encoding lacks most characters.
func TestMover_notesAnErrorInADatabaseThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	url := testpostgres.Database(t)
	w := newWorld(t, url, testredis.Client(t))
	_, err := w.db.ExecContext(t.Context(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	w.must(err)
	t.Cleanup(func() { _, _ = w.db.ExecContext(context.Background(), "DROP DATABASE latin WITH (FORCE)") })
	l := newWorld(t, strings.TrimSuffix(url, path.Base(url))+"latin?client_encoding=UTF8", w.rdb)
	l.add(task.New("job", nil, task.ID("bad")))
	l.drain(l.mover(func(c *MoverConfig) {
		c.Producer = l.producer(producer.Config{Check: func(*task.Task) error { return errors.New("no 日本") }})
	}))
	if s, err := Look(t.Context(), l.at, l.ns); err != nil || s.Refused != 1 || !strings.HasPrefix(s.Why, `"no `) {
		t.Errorf("%+v, %v", s, err)
	}
}

// A row that the database neither removes nor changes holds up no other: a trigger of the user forbids it. Its task comes once.
func TestMover_passesOverRowsThatStay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		free := w.forbid("DELETE", "UPDATE")
		w.add(append(jobs("stuck", 2), jobs("good", 3)...)...)
		w.add(task.New("bad", nil, task.ID("stuck-bad")), task.New("job", nil, task.ID("last")))
		m := w.mover(func(c *MoverConfig) {
			c.Producer = w.producer(producer.Config{Check: func(t *task.Task) error {
				if t.Type == "bad" {
					return errors.New("no")
				}
				return nil
			}})
		})
		counts := map[string]int{}
		for range 2 {
			w.drain(m)
			w.consume(counts)
			m.stuck = stuck{} // as if its time was up
		}
		if w.rows() != 3 || w.seen.of(Moved) != 4 || w.seen.of(Stuck) != 6 || w.seen.of(Refused) != 0 {
			t.Errorf("%d rows, %v", w.rows(), w.seen.results)
		}
		if n := w.told("outbox stuck"); n != 2 {
			t.Errorf("%d events", n)
		}
		free()
		w.drain(m)
		w.consume(counts)
		if w.rows() != 1 || w.seen.of(Moved) != 6 || w.seen.of(Refused) != 1 {
			t.Errorf("once the database removes them: %d rows, %v", w.rows(), w.seen.results)
		}
		for _, id := range []string{"stuck0", "stuck1", "good0", "good1", "good2", "last"} {
			if counts[id] != 1 {
				t.Errorf("%s came %d times", id, counts[id])
			}
		}
	})
}

// The same for a row of which the database says only at the commit that it stays.
func TestMover_passesOverARowThatFailsTheCommit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.add(append(jobs("a", 3), append(jobs("stuck", 1), jobs("b", 3)...)...)...)
		_, err := w.db.ExecContext(t.Context(), "CREATE TABLE notes (row_id bigint REFERENCES onbeat_outbox (id) DEFERRABLE INITIALLY DEFERRED)")
		w.must(err)
		_, err = w.db.ExecContext(t.Context(), "INSERT INTO notes SELECT id FROM onbeat_outbox WHERE task = 'stuck0'")
		w.must(err)
		m := w.mover()
		if m.db.Kind == SQLite {
			m.db.SetMaxOpenConns(1)
			_, err = m.db.ExecContext(t.Context(), "PRAGMA foreign_keys = on")
			w.must(err)
		}
		for range 20 { // each failure halves the batch
			if _, err = m.turn(t.Context()); err == nil && w.rows() == 1 {
				break
			}
		}
		if err != nil || len(w.records()) != 7 || w.rows() != 1 || w.seen.of(Moved) != 6 || w.seen.of(Stuck) != 1 {
			t.Errorf("%v, %d tasks, %d rows, %v", err, len(w.records()), w.rows(), w.seen.results)
		}
	})
}

// failing is a Redis that answers calls of scripts with an error of its own, while it is on: all of them, or those whose arguments have a text.
type failing struct {
	on   bool
	only string
}

type reply string

func (s reply) Error() string { return string(s) }
func (s reply) RedisError()   {}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.on && strings.HasPrefix(cmd.Name(), "eval") && strings.Contains(fmt.Sprintf("%s", cmd.Args()), f.only) {
			cmd.SetErr(reply("ERR upstream failure"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// behindAProxy returns a world whose Redis fails as f says.
func behindAProxy(t *testing.T) (*world, *failing) {
	t.Helper()
	rdb, f := testredis.Client(t), &failing{}
	through := redis.NewClient(rdb.Options())
	t.Cleanup(func() { _ = through.Close() })
	through.AddHook(f)
	return newWorld(t, onSQLite(t), through), f
}

// An error of Redis that no table knows is not the fault of a row as long as no other row passes. All come after it, however often it fails.
func TestMover_refusesNoRowWhileRedisFailsForAnUnknownReason(t *testing.T) {
	t.Parallel()
	w, f := behindAProxy(t)
	w.add(jobs("a", 20)...)
	m := w.mover()
	f.on = true
	failed := 0
	for i := range 60 {
		if _, err := m.turn(t.Context()); err != nil {
			failed++
		}
		if i%20 == 19 {
			m.stuck = stuck{} // as if its time was up
		}
	}
	if w.seen.of(Refused) != 0 || w.seen.of(Stuck) == 0 || failed < 40 { // a turn that fails has the mover wait
		t.Errorf("%v, %d turns failed", w.seen.results, failed)
	}
	f.on = false
	w.drain(m)
	m.stuck = stuck{}
	w.drain(m)
	if len(w.records()) != 20 || w.rows() != 0 || w.seen.of(Moved) != 20 || w.seen.of(Refused) != 0 {
		t.Errorf("%d tasks, %d rows, %v", len(w.records()), w.rows(), w.seen.results)
	}
}

// A row that fails for an unknown reason while others pass is refused at its second turn. It holds up no other.
func TestMover_refusesARowThatFailsAgainWhileOthersPass(t *testing.T) {
	t.Parallel()
	w, f := behindAProxy(t)
	f.on, f.only = true, "|poison" // its lane
	w.add(append(jobs("a", 3), append(jobs("b", 3), task.New("poison", nil, task.ID("poison")))...)...)
	m := w.mover()
	for range 20 { // each failure halves the batch
		if _, err := m.turn(t.Context()); err == nil && w.seen.of(Moved) == 6 && w.seen.of(Stuck) == 1 {
			break
		}
	}
	if w.seen.of(Moved) != 6 || w.seen.of(Stuck) != 1 || w.seen.of(Refused) != 0 || w.told("outbox stuck") != 1 {
		t.Errorf("at first: %v", w.seen.results)
	}
	w.add(jobs("c", 1)...)
	w.drain(m)
	m.stuck = stuck{}
	w.drain(m)
	if s, err := Look(t.Context(), w.at, w.ns); err != nil || s.Refused != 1 || s.Waiting != 0 || !strings.Contains(s.Why, "upstream") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A limit that passes refuses no row: rows that need a new lane wait, others go on.
func TestMover_waitsForALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	w.add(task.New("known", nil, task.ID("first")))
	m := w.mover()
	w.drain(m)
	lanes := map[string]any{}
	for i := range 2000 {
		lanes[fmt.Sprintf("full%d|normal|x", i)] = 1
	}
	w.must(w.rdb.HSet(t.Context(), w.keys.Lanes, lanes).Err())
	w.add(task.New("job", nil, task.ID("paid")), task.New("known", nil, task.ID("last")))
	w.drain(m)
	if w.seen.of(Moved) != 2 || w.seen.of(Stuck) != 1 || w.seen.of(Refused) != 0 || w.told("outbox stuck") != 1 {
		t.Errorf("%v", w.seen.results)
	}
	for lane := range lanes {
		w.must(w.rdb.HDel(t.Context(), w.keys.Lanes, lane).Err())
	}
	m.stuck = stuck{} // as if its time was up
	w.drain(m)
	if w.records()["paid"] == nil || w.rows() != 0 {
		t.Errorf("%d tasks, %d rows, %v", len(w.records()), w.rows(), w.seen.results)
	}
}

// Without the right to remove rows, tasks come all the same, each once, up to a bound.
func TestMover_boundsTheRowsThatStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	w.add(jobs("a", 1)...)
	m := w.mover()
	for id := range int64(maxStuck) {
		m.stuck.pass(-id, time.Now())
	}
	if _, err := m.turn(t.Context()); !errors.Is(err, errStuck) || len(w.records()) != 0 {
		t.Errorf("%v, %d tasks", err, len(w.records()))
	}
}

// forbid makes the database refuse statements on the rows of tasks whose IDs begin with stuck, until free.
func (w *world) forbid(statements ...string) (free func()) {
	w.Helper()
	run := func(statement string) {
		_, err := w.db.ExecContext(w.Context(), statement)
		w.must(err)
	}
	on, does := "", "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
	if strings.HasPrefix(w.at.URL, "postgres") {
		run("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$")
		on, does = " ON onbeat_outbox", "EXECUTE FUNCTION no()"
	}
	for _, s := range statements {
		run("CREATE TRIGGER no_" + s + " BEFORE " + s + " ON onbeat_outbox FOR EACH ROW WHEN (old.task LIKE 'stuck%') " + does)
	}
	return func() {
		for _, s := range statements {
			run("DROP TRIGGER no_" + s + on)
		}
	}
}

// told returns how many events of a kind there are.
func (w *world) told(kind string) (n int) {
	w.Helper()
	events, err := w.q.Events(w.Context(), time.Time{}, 1000)
	w.must(err)
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}
