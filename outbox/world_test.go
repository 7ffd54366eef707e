package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const patience = 30 * time.Second

// world is a namespace on a Redis, and a database with the table.
type world struct {
	testing.TB
	at   SQL
	db   *sql.DB
	rdb  redis.UniversalClient
	ns   string
	q    *queue.Queue
	keys queue.Keys
	box  *Outbox
	seen *tally
}

// each runs a test on SQLite, and on PostgreSQL.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, onSQLite(t), testredis.Client(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, testpostgres.Database(t), testredis.Client(t)))
	})
}

func onSQLite(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "shop.db") }

func newWorld(t testing.TB, url string, rdb redis.UniversalClient) *world {
	t.Helper()
	w := &world{TB: t, at: SQL{URL: url, Poll: 50 * time.Millisecond}, rdb: rdb, ns: testredis.Namespace(t), seen: &tally{results: map[string]int{}}}
	w.box = &Outbox{Namespace: w.ns}
	var err error
	w.q, err = queue.New(rdb, queue.Partition{Namespace: w.ns}, queue.Caps{})
	w.must(err)
	w.keys = w.q.Keys()
	db, err := w.at.Open()
	w.must(err)
	w.db = db.DB
	t.Cleanup(func() { _ = w.db.Close() })
	w.must(Migrate(t.Context(), w.db))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// sealed has the outbox and the movers of w encrypt payloads.
func (w *world) sealed() *seal.Keys {
	w.Helper()
	w.box.Encryption = task.Encryption{Keys: []task.EncryptionKey{{ID: "k", Secret: make([]byte, task.EncryptionKeyBytes)}}}
	keys, err := seal.New(w.box.Encryption, w.ns)
	w.must(err)
	w.q.SealWith(keys)
	return keys
}

// add adds tasks in a transaction that commits.
func (w *world) add(tasks ...*task.Task) {
	w.Helper()
	w.must(w.box.Add(w.Context(), w.db, tasks...))
}

func (w *world) producer(c producer.Config) *producer.Producer {
	w.Helper()
	p, err := producer.New(w.q.Client(), w.ns, c)
	w.must(err)
	return p
}

// mover returns a mover that is ready to make turns.
func (w *world) mover(change ...func(*MoverConfig)) *Mover {
	w.Helper()
	c := MoverConfig{Database: w.at, Redis: w.q.Client(), Namespace: w.ns, Producer: w.producer(producer.Config{}), Observer: w.seen}
	for _, f := range change {
		f(&c)
	}
	m, err := NewMover(c)
	w.must(err)
	w.must(m.open())
	w.Cleanup(func() { _ = m.db.Close() })
	return m
}

// drain makes turns until there are no more rows to move.
func (w *world) drain(m *Mover) {
	w.Helper()
	for more := true; more; {
		more, _ = w.turn(m)
	}
}

// turn has a mover take its turn, again if a server of a busy machine did not tell the time soon enough. It says how often that was.
func (w *world) turn(m *Mover) (more bool, again int) {
	w.Helper()
	for end := time.Now().Add(patience); ; again++ {
		more, err := m.turn(w.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(end) {
			w.must(err)
			return more, again
		}
	}
}

// run runs a mover until stop, or the end of the test.
func (w *world) run(m *Mover) (stop func()) {
	w.Helper()
	_ = m.db.Close() // Run opens its own
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-over; err != nil {
				w.Errorf("run: %v", err)
			}
		})
	}
	w.Cleanup(stop)
	return stop
}

// die does all that a mover does with a batch up to the commit, and then loses the transaction, as a mover that dies.
func (w *world) die(m *Mover) {
	w.Helper()
	began, err := m.q.Now(w.Context())
	w.must(err)
	tx, err := m.db.BeginTx(w.Context(), nil)
	w.must(err)
	rows, _, err := m.take(w.Context(), tx)
	w.must(err)
	_, err = m.add(w.Context(), rows, []time.Time{began})
	w.must(err)
	w.must(tx.Rollback())
}

// count reads a number from the database.
func (w *world) count(query string, args ...any) (n int) {
	w.Helper()
	w.must(w.db.QueryRowContext(w.Context(), query, args...).Scan(&n))
	return n
}

func (w *world) rows() int { return w.count("SELECT count(*) FROM onbeat_outbox") }

// records returns the tasks in Redis.
func (w *world) records() map[string]*task.Task {
	w.Helper()
	all := map[string]*task.Task{}
	for id, rec := range w.rdb.HGetAll(w.Context(), w.keys.Tasks).Val() {
		t := &task.Task{ID: id}
		w.must(task.Decode(rec, t))
		all[id] = t
	}
	return all
}

// consume forgets all tasks in Redis, as if they had run, and counts each.
func (w *world) consume(counts map[string]int) {
	w.Helper()
	for id, t := range w.records() {
		counts[id]++
		w.rdb.ZRem(w.Context(), w.keys.Due(queue.LaneOf(t)), id)
		w.rdb.HDel(w.Context(), w.keys.Tasks, id)
	}
}

func jobs(prefix string, n int) []*task.Task {
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = task.New("job", map[string]int{"n": i}, task.ID(fmt.Sprintf("%s%d", prefix, i)), task.Keep(-1))
	}
	return list
}

// tally is an observer.
type tally struct {
	mu      sync.Mutex
	results map[string]int
	waiting int
}

func (s *tally) OutboxMoved(result string, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[result] += rows
}

func (s *tally) OutboxWaiting(rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = rows
}

func (s *tally) of(result string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[result]
}

// heard is a log that a test listens to.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

// times returns how often a line was logged.
func (h *heard) times(line string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.text.String(), `"message":"`+line+`"`)
}

// pgxTx begins a transaction of pgx.
func (w *world) pgxTx() (pgx.Tx, func()) {
	w.Helper()
	c, err := pgx.Connect(w.Context(), w.at.URL)
	w.must(err)
	tx, err := c.Begin(w.Context())
	w.must(err)
	return tx, func() { _ = c.Close(context.Background()) }
}
