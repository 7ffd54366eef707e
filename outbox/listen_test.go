package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

const patience = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moving is a mover that runs until the end of the test.
type moving struct {
	testing.TB
	rdb   redis.UniversalClient
	db    *sql.DB
	ns    string
	moved atomic.Int64
}

func newMoving(t testing.TB, c outbox.SQL) *moving {
	t.Helper()
	m := &moving{TB: t, rdb: testredis.Client(t), ns: testredis.Namespace(t)}
	opened, err := c.Open()
	must(t, err)
	m.db = opened.DB
	t.Cleanup(func() { _ = m.db.Close() })
	must(t, outbox.Migrate(t.Context(), m.db))
	p, err := producer.New(m.rdb, m.ns, producer.Config{})
	must(t, err)
	mover, err := outbox.NewMover(outbox.MoverConfig{
		Database: c, Redis: m.rdb, Namespace: m.ns, Producer: p, Observer: m,
	})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- mover.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-over)
	})
	return m
}

// OutboxMoved counts rows.
func (m *moving) OutboxMoved(_ string, rows int) { m.moved.Add(int64(rows)) }

func (m *moving) OutboxWaiting(int) {}

func (m *moving) add(id string) {
	m.Helper()
	box := outbox.Outbox{Namespace: m.ns}
	must(m, box.Add(m.Context(), m.db, task.New("job", nil, task.ID(id), task.Keep(-1))))
}

// listeners counts the sessions that listen.
func (m *moving) listeners() (n int) {
	m.Helper()
	must(m, m.db.QueryRowContext(m.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN onbeat_outbox' AND datname = current_database()").Scan(&n))
	return n
}

// PostgreSQL tells movers of new rows: they do not wait until they look by themselves.
func TestListen_tellsAMoverAtOnce(t *testing.T) {
	t.Parallel()
	m := newMoving(t, outbox.SQL{URL: testpostgres.Database(t), Poll: time.Hour})
	for i := range 3 {
		testredis.Eventually(t, patience, func() bool { return m.listeners() == 1 }, "it does not listen")
		m.add(fmt.Sprint("x", i))
		testredis.Eventually(t, patience, func() bool { return m.moved.Load() > int64(i) }, "task %d was not moved", i)
		if i == 1 { // it listens anew
			_, err := m.db.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN onbeat_outbox' AND datname = current_database()")
			must(t, err)
			testredis.Eventually(t, patience, func() bool { return m.listeners() == 0 }, "the session goes on")
		}
	}
}

// A file of SQLite tells nobody; a mover looks.
func TestOpen_ofAFileIsLookedIntoByPoll(t *testing.T) {
	t.Parallel()
	m := newMoving(t, outbox.SQL{URL: "sqlite://" + t.TempDir() + "/a b%20c.db", Poll: 50 * time.Millisecond})
	m.add("x")
	testredis.Eventually(t, patience, func() bool { return m.moved.Load() == 1 }, "not moved")
}

// How long after its commit a task is in Redis, one at a time.
func BenchmarkLag(b *testing.B) {
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "sqlite://" + b.TempDir() + "/shop.db" }, "postgres": func() string { return testpostgres.Database(b) },
	} {
		b.Run(name, func(b *testing.B) {
			m := newMoving(b, outbox.SQL{URL: url()})
			tasks := queue.Partition{Namespace: m.ns}.Keys().Tasks
			var lags []time.Duration
			for i := 0; b.Loop(); i++ {
				id := fmt.Sprint("x", i)
				m.add(id)
				began := time.Now()
				for !m.rdb.HExists(context.Background(), tasks, id).Val() {
					time.Sleep(100 * time.Microsecond)
				}
				lags = append(lags, time.Since(began))
			}
			slices.Sort(lags)
			b.ReportMetric(float64(lags[len(lags)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
