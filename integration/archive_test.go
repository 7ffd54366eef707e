package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// run names a run of a task.
type run struct {
	task    string
	attempt int
}

// side is one of two namespaces that are rolled out alike, one with an archive and one without.
type side struct {
	*world
	head     string
	list     []string // its schedules
	replicas []*rig.Process
	started  int
}

const sideReplicas = 3

// newSide prepares a namespace with a beat of 100 ms and one of a second.
func newSide(w *world, head string) *side {
	missed := "missed: all"
	return &side{
		world: w, head: "concurrency: 50\n" + head,
		list: []string{w.Beat("quick", fleetEvery, missed), w.Beat("slow", time.Second, missed)},
	}
}

// start starts one replica of a release, and waits until it is ready.
func (s *side) start(version int, list ...string) *rig.Process {
	s.Helper()
	s.started++
	p := s.Serve(fmt.Sprintf("%d-v%d", s.started, version), s.Config(fmt.Sprintf("v%d.yaml", version), s.head, list...), "--release", fmt.Sprintf("v%d", version))
	p.Said("ready")
	return p
}

// stop stops all replicas, at once.
func (s *side) stop() {
	s.Helper()
	rig.Stop(s.replicas...)
}

// says counts how often the replicas that were not replaced have logged a message.
func (s *side) says(message string) (n int) {
	for _, p := range s.replicas {
		n += p.Says(message)
	}
	return n
}

// archived is a database that is stopped, killed and filled up while both sides go on.
type archived struct {
	*testing.T
	server      *testpostgres.Server
	url         string
	resize      func(size string) error // of its file system; nil: it cannot be filled up
	why         string                  // it cannot
	dir         string
	with, plain *side
	version     int
}

const roomy = "2g"

// newArchived starts a database whose tables lie on a file system of their own, where the test may mount one.
func newArchived(t *testing.T) *archived {
	t.Helper()
	a := &archived{T: t}
	a.dir, a.resize, a.why = smallDisk(t)
	a.server = testpostgres.Private(t)
	if a.url = a.server.Database(); a.resize == nil {
		return a
	}
	a.query("postgres", "create tablespace small location '"+a.dir+"'")
	a.query("postgres", "create database small tablespace small")
	a.url = a.server.URL("small")
	return a
}

// query runs SQL that returns nothing.
func (a *archived) query(database, sql string) {
	a.Helper()
	c, err := pgx.Connect(a.Context(), a.server.URL(database))
	if err == nil {
		_, err = c.Exec(a.Context(), sql)
		err = errors.Join(err, c.Close(a.Context()))
	}
	if err != nil {
		a.Fatal(err)
	}
}

// smallDisk mounts a file system of the user postgres, and returns how to change its size; or why it cannot.
func smallDisk(t *testing.T) (dir string, resize func(size string) error, why string) {
	t.Helper()
	if os.Getuid() != 0 {
		return "", nil, "only root mounts a small file system"
	}
	dir, err := os.MkdirTemp("", "onbeat-small-") // not t.TempDir, into which the user postgres may not look
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	mount := func(options string) error {
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	}
	if err := mount("size=" + roomy); err != nil {
		return "", nil, err.Error()
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	return dir, func(size string) error { return mount("remount,size=" + size) }, ""
}

// rollout replaces all replicas of both sides, one after the other.
func (a *archived) rollout() {
	a.Helper()
	a.version++
	for i := range sideReplicas {
		for _, s := range []*side{a.with, a.plain} {
			next := s.start(a.version, s.list...)
			if i < len(s.replicas) {
				s.replicas[i].Stop()
				s.replicas[i] = next
			} else {
				s.replicas = append(s.replicas, next)
			}
		}
	}
}

// goesOn waits until a run is archived that ended after this moment, so that each fault meets an archiver that works.
func (a *archived) goesOn() {
	a.Helper()
	c, err := pgx.Connect(a.Context(), a.url)
	if err != nil {
		a.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	begin := time.Now()
	testredis.Eventually(a, 2*time.Minute, func() bool {
		var there bool
		err := c.QueryRow(a.Context(), "select exists (select from onbeat_runs where namespace = $1 and noted > $2)", a.with.NS, begin).Scan(&there)
		return err == nil && there
	}, "nothing is archived any more")
}

// killed kills the database at a random moment of a batch.
func (a *archived) killed() {
	a.Helper()
	a.goesOn()
	time.Sleep(rand.N(time.Second)) // the fault's own moment
	a.server.Kill()
	a.server.Start()
}

// stopped stops the database for a time, in which both sides are rolled out.
func (a *archived) stopped(d time.Duration) {
	a.Helper()
	a.goesOn()
	said := a.with.says("cannot archive: trying again")
	a.server.Stop()
	end := time.Now().Add(d)
	testredis.Eventually(a, time.Minute, func() bool { return a.with.says("cannot archive: trying again") > said }, "nobody says that the database is away")
	a.rollout()
	time.Sleep(time.Until(end)) // the fault itself
	a.server.Start()
}

// filled fills up the disk of the database for a time. It reports whether it could.
func (a *archived) filled(d time.Duration) bool {
	a.Helper()
	if a.resize == nil {
		a.Log("the database is not filled up: ", a.why)
		return false
	}
	a.goesOn()
	said := a.with.says("cannot archive: trying again")
	testredis.Eventually(a, time.Minute, func() error { // PostgreSQL may write more in between, and then it does not fit
		var fs syscall.Statfs_t
		if err := syscall.Statfs(a.dir, &fs); err != nil {
			return err
		}
		return a.resize(fmt.Sprint((fs.Blocks - fs.Bfree) * uint64(fs.Bsize)))
	}, "the disk is as small as what is on it")
	end := time.Now().Add(d)
	testredis.Eventually(a, 2*time.Minute, func() bool { return a.with.says("cannot archive: trying again") > said }, "nobody says that the database is full")
	time.Sleep(time.Until(end)) // the fault itself
	if err := a.resize(roomy); err != nil {
		a.Fatal(err)
	}
	return true
}

// rows returns how often the archive has each run that began.
func (a *archived) rows() map[run]int {
	c, err := pgx.Connect(a.Context(), a.url)
	if err != nil {
		a.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	list, err := c.Query(a.Context(), "select task, attempt from onbeat_runs where namespace = $1 and claimed is not null", a.with.NS)
	if err != nil {
		a.Fatal(err)
	}
	rows := map[run]int{}
	var r run
	if _, err := pgx.ForEachRow(list, []any{&r.task, &r.attempt}, func() error { rows[r]++; return nil }); err != nil {
		a.Fatal(err)
	}
	return rows
}

// witness reads each run that instances note in Redis, as soon as they do, until it is asked what it saw.
func witness(w *world, rdb *redis.Client) (saw func() map[run]int) {
	ctx, stop := context.WithCancel(w.Context())
	runs, ended := map[run]int{}, make(chan struct{})
	keys := []string{"onbeat:{" + w.NS + "}:history", "onbeat:{" + w.NS + "}:runs"}
	go func() {
		defer close(ended)
		after := []string{"0", "0"}
		for ctx.Err() == nil {
			list, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: append(append([]string{}, keys...), after...), Block: 200 * time.Millisecond}).Result()
			if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
				w.Error(err)
				return
			}
			for _, stream := range list {
				for _, m := range stream.Messages {
					after[map[bool]int{false: 1, true: 0}[stream.Stream == keys[0]]] = m.ID
					for _, n := range history.ParseEntry(m.ID, m.Values).Notes {
						if !n.Claimed.IsZero() {
							runs[run{n.TaskID, n.Attempt}]++
						}
					}
				}
			}
		}
	}()
	return func() map[run]int {
		stop()
		<-ended
		return runs
	}
}

// An archive loses no run and doubles none, and the beat keeps, while its database is killed, stopped and full, and the instances
// are replaced meanwhile. Beside it, the same beat goes on without an archive.
func TestArchive_keepsEachRunOnceThroughFaultsOfItsDatabase(t *testing.T) {
	beside(t)
	length := testredis.Size(20*time.Second, time.Hour)
	srv := testredis.Private(t)
	a := newArchived(t)
	a.with = newSide(worldOn(t, srv.URL()), fmt.Sprintf("archive: {url: %q}\n", a.url))
	a.plain = newSide(worldOn(t, srv.URL()), "")
	saw := witness(a.with.world, srv.Client())
	began := time.Now()
	until := func(part float64) { time.Sleep(time.Until(began.Add(time.Duration(part * float64(length))))) }

	a.rollout()
	tasks := a.with.oneOffs(length)
	until(.2)
	a.killed()
	until(.3)
	a.rollout()
	until(.4)
	a.stopped(length / 12)
	until(.6)
	a.killed()
	until(.65)
	full := a.filled(length / 20)
	until(.8)
	a.rollout()
	until(1)
	testredis.Eventually(t, time.Minute, func() bool { return len(a.with.Task(tasks)) > 0 }, "the last task does not run")
	ended := time.Now()
	a.with.stop()
	a.plain.stop()
	besides := fmt.Sprintf("%s; PostgreSQL killed 2 times, stopped for %s, full: %t; %d rollouts of %d instances", length, length/12, full, a.version, sideReplicas)
	plain := a.plain.judge(ended)
	with := a.with.judge(ended)

	last := a.with.start(a.version + 1) // archives what was new when the others stopped, and has no schedules
	var rows, arrived map[run]int
	testredis.Eventually(t, 2*time.Minute, func() error { // it runs the slots of the time since too, until it has retired their schedules
		time.Sleep(time.Second)
		if rows, arrived = a.rows(), a.with.arrived(); len(rows) != len(arrived) {
			return fmt.Errorf("%d runs of %d are archived", len(rows), len(arrived))
		}
		return nil
	}, "the archive does not catch up")
	last.Stop()
	wantOnce(t, "the recorder", arrived, rows)
	wantOnce(t, "Redis", saw(), rows)
	for r := range rows {
		if arrived[r] == 0 {
			t.Errorf("%v is in the archive, and never arrived", r)
		}
	}
	a.with.Row("archive whose PostgreSQL is killed, stopped and full", with, besides, fmt.Sprintf("%d runs, each archived once", len(rows)))
	a.plain.Row("the same beat without an archive", plain)
}

// arrived returns how often each run arrived.
func (s *side) arrived() map[run]int {
	runs := map[run]int{}
	for _, r := range s.Rec.Arrivals() {
		runs[run{r.ID, r.Attempt}]++
	}
	return runs
}

// judge judges both beats, and returns the figures of the quick one.
func (s *side) judge(ended time.Time) *trial.Result {
	s.Helper()
	s.WantEverySlot("slow", time.Second, false)
	s.WantAuditAgrees("slow")
	return s.Steady(fleetEvery, ended.Add(-time.Second), "quick")
}

// oneOffs enqueues ten tasks a second for nearly all of a time, and returns the last.
func (s *side) oneOffs(length time.Duration) (last string) {
	s.Helper()
	var lines strings.Builder
	n := int(length*9/10/time.Second) * 10
	for i := range n {
		last = fmt.Sprintf("job-%06d", i)
		fmt.Fprintf(&lines, `{"type":"http","id":%q,"in":"%dms","payload":%s}`+"\n", last, i*100, s.Payload("job"))
	}
	s.Must("enqueue", "--file", s.File("tasks.jsonl", lines.String()))
	return last
}

// wantOnce fails unless each run that somebody knows was archived once.
func wantOnce(t *testing.T, who string, known, rows map[run]int) {
	t.Helper()
	lost, doubled := 0, 0
	for r, n := range known {
		if rows[r] < n {
			if lost++; lost <= 10 {
				t.Errorf("%s knows %v %d times, the archive %d times", who, r, n, rows[r])
			}
		}
		if rows[r] > n {
			doubled++
		}
	}
	if t.Logf("%s knows %d runs", who, len(known)); lost+doubled > 0 || len(known) == 0 {
		t.Errorf("of %d runs that %s knows, the archive lost %d and doubled %d", len(known), who, lost, doubled)
	}
}
