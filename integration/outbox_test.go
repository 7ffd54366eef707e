package integration

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

// The process that moves tasks from a database is killed at a random moment, again and again, under load, while another instance
// runs them. Each task whose transaction committed runs once, and no other.
func TestOutbox_theMoverIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"postgres", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url, driver := "", "pgx"
			if kind == "postgres" {
				url = testpostgres.Database(t)
			} else {
				url, driver = "sqlite://"+t.TempDir()+"/shop.db", "sqlite"
			}
			w.killMovers(kind, driver, url)
		})
	}
}

func (w *world) killMovers(kind, driver, url string) {
	source := url
	if driver == "sqlite" {
		source = "file:" + url[len("sqlite://"):] + "?_pragma=busy_timeout(10000)&_txlock=immediate"
	}
	db, err := sql.Open(driver, source)
	w.must(err)
	w.Cleanup(func() { _ = db.Close() })
	w.must(outbox.Migrate(w.Context(), db))
	runner := w.Serve("runner", w.Config("runner.yaml", "concurrency: 50\n"))
	runner.Said("leads")
	config := w.Config("mover.yaml", fmt.Sprintf("standby: true\nconsume: newest\noutbox: {url: %q, poll: 50ms}\n", url))

	writes := w.beginWriter(db)
	n := testredis.Size(4, 200)
	for i := range n {
		p := w.Serve(fmt.Sprintf("mover-%d", i), config)
		p.Said("moving tasks of the outbox")
		time.Sleep(rand.N(250 * time.Millisecond)) // the fault's own moment: before it locks rows, while it adds, before it commits
		p.Kill()
	}
	committed := writes.end()
	if writes.failed > 0 {
		w.Errorf("%d transactions failed", writes.failed)
	}
	last := w.Serve("last", config)
	last.Said("ready") // there may be nothing left to move: before this, SIGTERM just kills it
	testredis.Eventually(w, time.Minute, func() bool {
		var rows int
		w.must(db.QueryRowContext(w.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&rows))
		return rows == 0
	}, "rows stay in the table")
	testredis.Eventually(w, time.Minute, func() bool { return w.Rec.Count() >= len(committed) }, "not all tasks ran")
	last.Stop()
	runner.Stop()

	seen := map[string]int{}
	for _, a := range w.Rec.Arrivals() {
		if seen[a.ID]++; seen[a.ID] > 1 || committed[a.ID].IsZero() {
			w.Errorf("%s ran %d times, committed at %v", a.ID, seen[a.ID], committed[a.ID])
		}
	}
	if len(seen) != len(committed) || len(committed) == 0 {
		w.Errorf("%d tasks ran, %d were committed", len(seen), len(committed))
	}
	w.Row("mover of an outbox killed at a random moment ("+kind+")", nil, fmt.Sprintf("%d times; %d tasks, each once", n, len(seen)))
}

// writer adds tasks to an outbox, in transactions some of which are rolled back.
type writer struct {
	committed map[string]time.Time // task -> when its transaction had committed
	unsure    map[string]bool      // tasks whose transaction failed: it may have committed all the same
	failed    int                  // transactions
	stop      chan struct{}
	ended     sync.WaitGroup
}

func (w *world) beginWriter(db *sql.DB) *writer {
	x := &writer{committed: map[string]time.Time{}, unsure: map[string]bool{}, stop: make(chan struct{})}
	box := &outbox.Outbox{Namespace: w.NS}
	x.ended.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-x.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			list := make([]*task.Task, 1+i%7)
			for k := range list { // not kept: Redis forgets each as soon as it has run
				list[k] = task.New("http", map[string]string{"url": w.Rec.URL("job")}, task.ID(fmt.Sprintf("t%d-%d", i, k)), task.Keep(-1))
			}
			x.write(w.Context(), db, box, list, i%5 == 4)
		}
	})
	return x
}

func (x *writer) write(ctx context.Context, db *sql.DB, box *outbox.Outbox, list []*task.Task, takeBack bool) {
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		err = box.Add(ctx, tx, list...)
	}
	if err == nil && takeBack {
		return
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		x.failed++
	}
	for _, t := range list {
		if err == nil {
			x.committed[t.ID] = time.Now()
		} else {
			x.unsure[t.ID] = true
		}
	}
}

// end stops the writer, and returns what it committed.
func (x *writer) end() map[string]time.Time {
	close(x.stop)
	x.ended.Wait()
	return x.committed
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
