package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// A mover that dies after it added tasks, and before it committed, leaves the rows to the next. By then the tasks may have run, and
// nothing is known of them.
func TestMover_movesEachOnceAlthoughItDies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.add(jobs("x", 20)...)
		counts := map[string]int{}
		for range 3 {
			w.die(w.mover())
			w.consume(counts)
		}
		if w.rows() != 20 {
			t.Fatalf("%d rows stay", w.rows())
		}
		w.drain(w.mover())
		w.consume(counts)
		if len(counts) != 20 || w.rows() != 0 || w.seen.of(Moved) != 20 {
			t.Errorf("%d tasks, %d rows, %v", len(counts), w.rows(), w.seen.results)
		}
		for id, n := range counts {
			if n != 1 {
				t.Errorf("%s came %d times", id, n)
			}
		}
		// The same IDs again are other tasks.
		w.add(jobs("x", 20)...)
		w.drain(w.mover())
		if n := len(w.records()); n != 20 {
			t.Errorf("%d tasks of the second round", n)
		}
	})
}

// A mover that stood still while another moved its rows adds nothing when it goes on.
func TestMover_thatStoodStillAddsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testpostgres.Database(t), testredis.Client(t))
	w.add(jobs("x", 5)...)
	slow := w.mover()
	began, err := w.q.Now(t.Context())
	w.must(err)
	tx, err := slow.db.BeginTx(t.Context(), nil)
	w.must(err)
	rows, _, err := slow.take(t.Context(), tx)
	w.must(err)
	w.must(tx.Rollback()) // PostgreSQL ends the session of a mover that stands still
	w.drain(w.mover())
	counts := map[string]int{}
	w.consume(counts)
	if results, err := slow.add(t.Context(), rows, []time.Time{began}); err != nil || len(results) != 5 || !errors.Is(results[0].Err, task.ErrDuplicate) {
		t.Errorf("soon: %v, %v", results, err)
	}
	if _, err := slow.add(t.Context(), rows, []time.Time{began.Add(-queue.MoveWithin)}); !errors.Is(err, queue.ErrLate) {
		t.Errorf("late: %v", err)
	}
	if w.consume(counts); len(counts) != 5 {
		t.Errorf("%v", counts)
	}
}

// Rows whose tasks cannot be enqueued stay, with the error, and hold up none.
func TestMover_setsAsideWhatCannotBeEnqueued(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.add(append(jobs("bad", 3), jobs("good", 3)...)...)
		for id, record := range map[string]string{"bad0": "9garbage", "bad1": string(task.Encode(nil, &task.Task{Type: "no such name"}))} {
			_, err := w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET record = $1 WHERE task = $2", []byte(record), id)
			w.must(err)
		}
		_, err := w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET task = $1 WHERE task = $2", "nightly@1700000000000", "bad2")
		w.must(err)
		m := w.mover()
		w.drain(m)
		if len(w.records()) != 3 || w.rows() != 3 || w.seen.of(Moved) != 3 || w.seen.of(Refused) != 3 {
			t.Errorf("%d tasks, %d rows, %v", len(w.records()), w.rows(), w.seen.results)
		}
		w.drain(m)
		if n := w.count("SELECT count(*) FROM onbeat_outbox WHERE refused IS NOT NULL AND error <> ''"); n != 3 || w.seen.of(Refused) != 3 {
			t.Errorf("%d rows have an error, %v", n, w.seen.results)
		}
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		w.must(err)
		if len(events) != 1 || events[0].Kind != "outbox refused" || events[0].Fields["tasks"] != "3" || events[0].Fields["error"] == "" {
			t.Errorf("%+v", events)
		}
		s, err := Look(t.Context(), w.at, w.ns)
		if err != nil || s.Refused != 3 || s.Waiting != 0 || s.Why == "" {
			t.Errorf("%+v, %v", s, err)
		}
		// As docs/outbox.md says, they are tried again like this.
		_, err = w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET refused = NULL, error = NULL, task = 'mended' WHERE task = 'nightly@1700000000000'")
		w.must(err)
		w.drain(m)
		if w.records()["mended"] == nil || w.rows() != 2 {
			t.Errorf("%d rows", w.rows())
		}
	})
}

// A batch that fails for a reason that nothing explains is tried with fewer rows, until the one that is to blame is alone.
func TestMover_findsTheRowThatFailsForNoKnownReason(t *testing.T) {
	t.Parallel()
	unknown := errors.New("ERR something")
	for _, c := range []struct {
		failure error
		rows    int
		culprit bool
		most    int
	}{{unknown, 8, false, 4}, {unknown, 1, true, 1}, {queue.ErrLate, 8, false, maxBatch}, {context.DeadlineExceeded, 1, false, maxBatch}} {
		m := &Mover{most: maxBatch}
		b := &batch{m: m}
		if got := b.isCulprit(c.failure, make([]row, c.rows)); got != c.culprit || m.most != c.most {
			t.Errorf("%v with %d rows: %t, then %d", c.failure, c.rows, got, m.most)
		}
	}
}

// The delay of a task counts from when it was added, however late it is moved.
func TestMover_countsDelaysFromTheTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		in := func(id string, d time.Duration) *task.Task { return task.New("job", nil, task.ID(id), task.In(d)) }
		w.add(in("later", time.Hour), in("over", time.Minute), in("new", time.Hour))
		earlier := "added - interval '20 minutes'"
		if strings.HasPrefix(w.at.URL, "sqlite") {
			earlier = "added - 1200000"
		}
		_, err := w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET added = "+earlier+" WHERE task <> 'new'")
		w.must(err)
		now, err := w.q.Now(t.Context())
		w.must(err)
		w.drain(w.mover())
		for id, want := range map[string]time.Duration{"later": 40 * time.Minute, "over": 0, "new": time.Hour} {
			score := w.rdb.ZScore(t.Context(), w.keys.Due(queue.LaneOf(in(id, 0))), id).Val()
			if d := time.UnixMilli(int64(score)).Sub(now); d < want-20*time.Second || d > want+20*time.Second {
				t.Errorf("%s is due in %s, want %s", id, d, want)
			}
		}
	})
}

// A batch has so many bytes at most, and a row larger than that goes alone.
func TestMover_boundsItsBatches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		m := w.mover(func(c *MoverConfig) {
			c.Producer = w.producer(producer.Config{Limits: task.Limits{Payload: 8 << 20}})
		})
		w.box.Limits = task.Limits{Payload: 8 << 20}
		for i, size := range []int{1 << 20, 2 << 20, 3 << 20, 5 << 20, 1} {
			w.add(task.New("job", []byte(strings.Repeat("x", size)), task.ID(fmt.Sprint(i))))
		}
		for _, want := range []int{2, 1, 1, 1, 0} {
			if n, err := m.move(t.Context()); n != want || err != nil {
				t.Errorf("moved %d, want %d: %v", n, want, err)
			}
		}
		if n := len(w.records()); n != 5 {
			t.Errorf("%d tasks", n)
		}
	})
}

// Several movers at once move each task once, while tasks are added.
func TestMover_severalAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for range 3 {
			w.run(w.mover())
		}
		const n = 3000
		for i := 0; i < n; i += 100 {
			w.add(jobs(fmt.Sprintf("x%d-", i), 100)...)
		}
		testredis.Eventually(t, patience, func() bool { return w.seen.of(Moved) >= n }, "not all were moved: %d rows wait", w.rows())
		if len(w.records()) != n || w.seen.of(Moved) != n || w.seen.of(Duplicate) != 0 || w.rows() != 0 {
			t.Errorf("%d tasks, %d rows, %v", len(w.records()), w.rows(), w.seen.results)
		}
	})
}

// While Redis is away, or full, rows stay where they are.
func TestMover_waitsForRedis(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes")
	w := newWorld(t, onSQLite(t), srv.Client())
	log := &heard{}
	fails := func(times int) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool { return log.times("cannot move tasks of the outbox: trying again") == times }, "it does not say that it waits")
	}
	w.run(w.mover(func(c *MoverConfig) { c.Log = zerolog.New(log) }))
	w.add(jobs("a", 5)...)
	testredis.Eventually(t, patience, func() bool { return w.seen.of(Moved) == 5 }, "not moved")
	srv.Kill()
	w.add(jobs("b", 5)...)
	if fails(1); w.rows() != 5 {
		t.Errorf("%d rows wait", w.rows())
	}
	srv.Restart()
	testredis.Eventually(t, patience, func() bool { return w.seen.of(Moved) == 10 }, "not moved after the restart")
	w.must(srv.Client().ConfigSet(t.Context(), "maxmemory", "1").Err())
	w.add(jobs("c", 5)...)
	if fails(2); w.rows() != 5 || w.seen.of(Refused) != 0 {
		t.Errorf("%d rows wait, %v", w.rows(), w.seen.results)
	}
	w.must(srv.Client().ConfigSet(t.Context(), "maxmemory", "0").Err())
	testredis.Eventually(t, patience, func() bool { return w.seen.of(Moved) == 15 }, "not moved once there is room")
}

// The database is killed again and again under load. Each task whose transaction committed comes to Redis once.
func TestMover_survivesCrashesOfTheDatabase(t *testing.T) {
	t.Parallel()
	srv := testpostgres.Private(t)
	w := newWorld(t, srv.Database(), testredis.Client(t))
	for range 2 {
		w.run(w.mover())
	}
	sure, unsure := map[string]bool{}, map[string]bool{}
	for round := range 4 {
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for i := 0; ctx.Err() == nil; i++ {
				list := jobs(fmt.Sprintf("%d-%d-", round, i), 20)
				err := w.inTx(ctx, func(tx *sql.Tx) error { return w.box.Add(ctx, tx, list...) })
				for _, t := range list {
					if err == nil {
						sure[t.ID] = true
					} else { // a COMMIT without an answer
						unsure[t.ID] = true
					}
				}
			}
		}()
		time.Sleep(time.Duration(100+70*round) * time.Millisecond) // the fault's own moment
		srv.Kill()
		stop()
		<-over
		srv.Start()
	}
	testredis.Eventually(t, 2*patience, func() error {
		var n int
		if err := w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&n); err != nil || n > 0 {
			return fmt.Errorf("%d rows wait: %w", n, err)
		}
		return nil
	}, "rows stay")
	got := w.records()
	for id := range sure {
		if got[id] == nil {
			t.Errorf("%s was committed and is lost", id)
		}
	}
	for id := range got {
		if !sure[id] && !unsure[id] {
			t.Errorf("%s was never committed", id)
		}
	}
	if w.seen.of(Duplicate) != 0 || len(sure) == 0 {
		t.Errorf("%d tasks, %v", len(sure), w.seen.results)
	}
	t.Logf("%d tasks, %d of unknown outcome, %d came", len(sure), len(unsure), len(got))
}

func (w *world) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// PostgreSQL ends the session of a mover that stands still, and frees its rows.
func TestMover_holdsNoRowsForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testpostgres.Database(t), testredis.Client(t))
	w.add(jobs("x", 1)...)
	m := w.mover()
	tx, err := m.db.BeginTx(t.Context(), nil)
	w.must(err)
	defer func() { _ = tx.Rollback() }()
	_, _, err = m.take(t.Context(), tx)
	w.must(err)
	for setting, want := range map[string]string{"statement_timeout": "20s", "idle_in_transaction_session_timeout": "30s"} {
		var got string
		w.must(tx.QueryRowContext(t.Context(), "SELECT current_setting($1)", setting).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if n, err := w.mover().move(t.Context()); n != 0 || err != nil {
		t.Errorf("another takes %d locked rows: %v", n, err)
	}
}
