package integration

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/outbox"
)

// chaos is a namespace with an archive and an outbox, on a Redis and a PostgreSQL that the test disturbs.
type chaos struct {
	*world
	redis     *redis.Client
	server    *testpostgres.Server
	archive   *sql.DB
	shop      *sql.DB
	config    string
	without   string // a config without schedules
	instances []*rig.Process
	started   int
	emptied   []time.Time // when Redis was
	told      []event     // "archive lost", of Redis before it was emptied
}

// The time before and after a fault: it may touch all that is under way then.
const around = 90 * time.Second

func newChaos(t *testing.T) *chaos {
	t.Helper()
	w, srv := privateWorld(t)
	c := &chaos{world: w, redis: srv.Client(), server: testpostgres.Private(t)}
	open := func() (url string, db *sql.DB) {
		url = c.server.Database()
		db, err := sql.Open("pgx", url)
		w.must(err)
		t.Cleanup(func() { _ = db.Close() })
		return url, db
	}
	archive, shop := "", ""
	archive, c.archive = open()
	shop, c.shop = open()
	w.must(outbox.Migrate(t.Context(), c.shop))
	head := fmt.Sprintf("concurrency: 50\narchive: {url: %q}\n", archive)
	c.without = w.Config("without.yaml", head)
	c.config = w.Config("chaos.yaml", head+fmt.Sprintf("outbox: {url: %q, poll: 50ms}\n", shop),
		w.Beat("quick", fleetEvery, "missed: all"), w.Beat("slow", time.Second, "missed: all"))
	for range 3 {
		c.start()
	}
	c.instances[0].Said("ready")
	return c
}

func (c *chaos) start() {
	c.Helper()
	c.started++
	c.instances = append(c.instances, c.Serve(fmt.Sprint("chaos-", c.started), c.config))
}

// settled waits until a run is archived that ended after this moment, and no row waits in the outbox that was there before it.
func (c *chaos) settled() {
	c.Helper()
	begin, last := time.Now(), int64(0)
	c.must(c.shop.QueryRowContext(c.Context(), "SELECT coalesce(max(id), 0) FROM onbeat_outbox").Scan(&last))
	testredis.Eventually(c, 3*time.Minute, func() error {
		ctx, done := context.WithTimeout(c.Context(), 10*time.Second)
		defer done()
		var there bool
		if err := c.archive.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM onbeat_runs WHERE namespace = $1 AND noted > $2)", c.NS, begin).Scan(&there); err != nil || !there {
			return fmt.Errorf("archived: %t, %w", there, err)
		}
		var rows int
		if err := c.shop.QueryRowContext(ctx, "SELECT count(*) FROM onbeat_outbox WHERE id <= $1", last).Scan(&rows); err != nil || rows > 0 {
			return fmt.Errorf("%d rows wait, %w", rows, err)
		}
		return nil
	}, "it goes on")
}

// doctorSays fails unless the doctor soon complains, and its output has the word.
func (c *chaos) doctorSays(fault, word string) {
	c.Helper()
	testredis.Eventually(c, time.Minute, func() error {
		if code, out, errs := c.Try("-c", c.config, "doctor", "--strict"); code == 0 || !strings.Contains(out+errs, word) {
			return fmt.Errorf("exit %d: %s%s", code, out, errs)
		}
		return nil
	}, "%s: the doctor says so", fault)
}

// auditSays fails unless an audit of more than Redis has says that it could not ask the archive. A Redis that has all that was archived
// since it was emptied needs none, and says that it was emptied.
func (c *chaos) auditSays(fault string) {
	c.Helper()
	code, out, errs := c.Try("-c", c.config, "audit", "--since", "24h")
	if (code == 0 || !strings.Contains(errs, "could not ask the archive")) && !strings.Contains(out+errs, "came back empty") {
		c.Errorf("%s: an audit of a day: exit %d: %s%s", fault, code, out, errs)
	}
}

// The faults. Each goes on when the one before has settled.
func (c *chaos) databaseKilled() {
	c.server.Kill()
	c.doctorSays("the database was killed", "archive")
	c.auditSays("the database was killed")
	time.Sleep(rand.N(5 * time.Second)) // the fault's own length
	c.server.Start()
}

func (c *chaos) databaseFrozen() {
	c.server.Freeze()
	c.doctorSays("the database was frozen", "archive")
	begin := time.Now()
	c.auditSays("the database was frozen")
	if took := time.Since(begin); took > 20*time.Second {
		c.Errorf("with a frozen database an audit took %s", took)
	}
	time.Sleep(rand.N(40 * time.Second)) // longer than a mover may hold its rows, now and then
	c.server.Thaw()
}

func (c *chaos) archiveEmptied() {
	_, err := c.archive.ExecContext(c.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	c.must(err)
	c.doctorSays("the archive was emptied", "archive")
}

func (c *chaos) redisEmptied() {
	c.told = append(c.told, c.losses()...)
	c.emptied = append(c.emptied, time.Now())
	c.must(c.redis.FlushAll(c.Context()).Err())
	testredis.Eventually(c, time.Minute, func() bool {
		_, out, errs := c.Try("-c", c.config, "audit", "--since", "24h")
		return strings.Contains(out+errs, "came back empty")
	}, "Redis was emptied: an audit says so")
}

func (c *chaos) instanceKilled() {
	i := rand.IntN(len(c.instances))
	c.instances[i].Kill()
	c.instances = slices.Delete(c.instances, i, i+1)
	c.start()
}

// losses are the events of losses that Redis has.
func (c *chaos) losses() []event {
	c.Helper()
	var list struct{ Items []event }
	code, out, errs := c.Try("events", "--json", "--limit", "10000")
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		c.Fatalf("events: exit %d, %v: %s", code, err, errs)
	}
	return slices.DeleteFunc(list.Items, func(e event) bool { return e.Event != "archive lost" })
}

// Nothing is lost in silence: databases are killed, frozen and emptied, Redis is emptied, and instances are killed. Each row of the outbox
// whose transaction committed runs, and each run is in the archive or in a loss that is told. A double, or a task that is gone, is one
// that Redis had when it was emptied.
func TestChaos_archiveAndOutbox(t *testing.T) {
	testredis.OnlyInASoak(t)
	c := newChaos(t)
	length := time.Hour
	faults := []struct {
		name string
		play func()
	}{
		{"database killed", c.databaseKilled}, {"database frozen", c.databaseFrozen}, {"archive emptied", c.archiveEmptied},
		{"Redis emptied", c.redisEmptied}, {"instance killed", c.instanceKilled},
	}
	writes := c.beginWriter(c.shop)
	played := map[string]int{}
	for began, i := time.Now(), 0; time.Since(began) < length; i++ {
		if i%len(faults) == 0 { // all of them, each time in another order
			rand.Shuffle(len(faults), func(a, b int) { faults[a], faults[b] = faults[b], faults[a] })
		}
		f := faults[i%len(faults)]
		c.Logf("%s: %s", time.Since(began).Round(time.Second), f.name)
		f.play()
		c.settled()
		played[f.name]++
		time.Sleep(rand.N(5 * time.Second)) // the fault's own moment
	}
	committed := writes.end()
	testredis.Eventually(c, 2*time.Minute, func() bool {
		var rows int
		return c.shop.QueryRowContext(c.Context(), "SELECT count(*) FROM onbeat_outbox").Scan(&rows) == nil && rows == 0
	}, "rows stay in the table")
	time.Sleep(10 * time.Second) // the last tasks run
	rig.Stop(c.instances...)
	runs, doubled := c.wantRuns(writes, committed)
	last := c.Serve("last", c.without, "--release", "last") // archives what was new when the others stopped
	kept, lost := 0, 0
	testredis.Eventually(t, time.Minute, func() (err error) {
		kept, lost, err = c.archived()
		return err
	}, "each run is in the archive, or in a loss that was told")
	last.Stop()
	c.Row("archive and outbox in chaos", nil, fmt.Sprintf("%s; %v; %d tasks of the outbox ran, %d of them twice around a Redis that was emptied; %d runs archived, %d in losses that were told",
		length, played, runs, doubled, kept, lost))
}

// nearEmptied reports whether Redis was emptied close to a moment: its data of then may be gone, with the marks of the rows that were moved.
func (c *chaos) nearEmptied(at time.Time) bool {
	return slices.ContainsFunc(c.emptied, func(e time.Time) bool { return at.Before(e.Add(around)) && at.After(e.Add(-around)) })
}

// wantRuns fails unless each committed task ran, and none began the same attempt twice, but around a Redis that was emptied.
func (c *chaos) wantRuns(writes *writer, committed map[string]time.Time) (ran, doubled int) {
	c.Helper()
	seen := map[run]int{}
	first := map[string]bool{}
	for _, a := range c.Rec.Arrivals() {
		if a.Schedule != "" {
			continue
		}
		at, known := committed[a.ID]
		if first[a.ID] = true; !known && !writes.unsure[a.ID] {
			c.Errorf("%s ran, and was never committed", a.ID)
		}
		if r := (run{a.ID, a.Attempt}); seen[r] > 0 {
			if doubled++; known && !c.nearEmptied(at) && !c.nearEmptied(a.At) {
				c.Errorf("%s began attempt %d twice; it was committed at %s", a.ID, a.Attempt, at)
			}
		}
		seen[run{a.ID, a.Attempt}]++
	}
	for id, at := range committed {
		if !first[id] && !c.nearEmptied(at) {
			c.Errorf("%s was committed at %s, and never ran", id, at)
		}
	}
	return len(first), doubled
}

// archived counts the runs that are in the archive, and those that are in a loss that was told. Any other is an error.
func (c *chaos) archived() (kept, lost int, err error) {
	c.Helper()
	rows, err := c.archive.QueryContext(c.Context(), "SELECT task, attempt FROM onbeat_runs WHERE namespace = $1 AND claimed IS NOT NULL", c.NS)
	c.must(err)
	defer func() { _ = rows.Close() }()
	there := map[run]bool{}
	for rows.Next() {
		var r run
		c.must(rows.Scan(&r.task, &r.attempt))
		there[r] = true
	}
	c.must(rows.Err())
	told := append(c.told, c.losses()...)
	ms := func(text string) time.Time {
		var n int64
		_, err := fmt.Sscan(text, &n)
		c.must(err)
		return time.UnixMilli(n)
	}
	var missing []string
	for _, a := range c.Rec.Arrivals() {
		if there[run{a.ID, a.Attempt}] {
			kept++
			continue
		}
		const beside = 2 * time.Second // from the arrival to the note
		inLoss := slices.ContainsFunc(told, func(e event) bool {
			return !a.At.Before(ms(e.Fields["from"]).Add(-beside)) && !a.At.After(ms(e.Fields["to"]).Add(beside))
		})
		if lost++; !inLoss {
			missing = append(missing, fmt.Sprintf("%s, attempt %d, at %s", a.ID, a.Attempt, a.At.Format(time.RFC3339Nano)))
		}
	}
	if len(missing) > 0 {
		err = fmt.Errorf("%d runs are in no loss, and not in the archive: %v; losses: %+v", len(missing), missing[:min(len(missing), 20)], told)
	}
	return kept, lost, err
}
