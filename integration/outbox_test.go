package integration

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/onbeat/onbeat/integration/internal/rig"
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

	box := &outbox.Outbox{Namespace: w.NS}
	committed := map[string]bool{}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			list := make([]*task.Task, 1+i%7)
			for k := range list { // not kept: Redis forgets each as soon as it has run
				list[k] = task.New("http", map[string]string{"url": w.Rec.URL("job")}, task.ID(fmt.Sprintf("t%d-%d", i, k)), task.Keep(-1))
			}
			tx, err := db.BeginTx(w.Context(), nil)
			if err == nil {
				err = box.Add(w.Context(), tx, list...)
			}
			if err != nil {
				w.Error(err)
				return
			}
			if i%5 == 4 {
				_ = tx.Rollback()
				continue
			}
			if err := tx.Commit(); err != nil {
				w.Error(err)
				return
			}
			for _, t := range list {
				committed[t.ID] = true
			}
		}
	})
	n := rig.Size(4, 200)
	for i := range n {
		p := w.Serve(fmt.Sprintf("mover-%d", i), config)
		p.Said("moving tasks of the outbox")
		time.Sleep(rand.N(250 * time.Millisecond)) // the fault's own moment: before it locks rows, while it adds, before it commits
		p.Kill()
	}
	close(stop)
	writer.Wait()
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
		if seen[a.ID]++; seen[a.ID] > 1 || !committed[a.ID] {
			w.Errorf("%s ran %d times, committed: %t", a.ID, seen[a.ID], committed[a.ID])
		}
	}
	if len(seen) != len(committed) || len(committed) == 0 {
		w.Errorf("%d tasks ran, %d were committed", len(seen), len(committed))
	}
	w.Row("mover of an outbox killed at a random moment ("+kind+")", nil, fmt.Sprintf("%d times; %d tasks, each once", n, len(seen)))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
