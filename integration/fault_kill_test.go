package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// The leader is killed at a random moment, again and again, while an older instance is there to take over. Every slot runs,
// on the grid. None runs twice, except as a further attempt of a lost run.
func TestFault_theLeaderIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.Config("onbeat.yaml", "concurrency: 20\nlease: "+shortLease()+"\n", w.Beat("a", beatEvery),
		w.BeatTo("b?for=150ms", "b", beatEvery), w.Beat("c", time.Second)) // b nearly always runs
	spare := w.Serve("spare", config, "--release", "spare")
	spare.Said("leads")
	n := testredis.Size(3, 100)
	for i := range n {
		name := fmt.Sprintf("killed-%d", i)
		p := w.Serve(name, config, "--release", name)
		p.Said("registered")
		time.Sleep(rand.N(700 * time.Millisecond)) // the fault's own moment: before it leads, while it claims, runs or settles
		p.Kill()
		w.Grow(12, "nobody took over from "+name)
	}
	w.Grow(60, "the beat stopped") // tasks of the last killed leader run again when its lease is over, on a busy machine later
	ended := time.Now()
	spare.Stop()
	w.WantEverySlot("c", time.Second, true)
	w.WantAuditAgrees("c")
	w.wantBeats("leader killed at a random moment (lease "+shortLease()+")", ended, []string{"a", "b"}, fmt.Sprintf("%d times", n))
}

// A client is killed while it adds a file. Only whole batches of the file are there, and the same file again adds the rest,
// each task once.
func TestFault_aClientIsKilledInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rdb := testredis.Client(t)
	const batch, all = 1000, 40_000
	var lines strings.Builder
	for i := range all {
		fmt.Fprintf(&lines, `{"type":"http","id":"job-%05d","in":"1h","payload":{"url":"http://127.0.0.1:1/"}}`+"\n", i)
	}
	file := w.File("tasks.jsonl", lines.String())
	tasks := "onbeat:{" + w.NS + "}:tasks"
	there := func() int { return int(rdb.HLen(context.Background(), tasks).Val()) }
	partly := 0
	for i := range testredis.Size(3, 20) {
		client, err := trial.Start("client", filepath.Join(w.Dir, "client.log"), trial.Program{Path: w.Binary(), Args: []string{"enqueue", "--file", file}, Env: w.Env()})
		if err != nil {
			t.Fatal(err)
		}
		before := there()
		testredis.Eventually(t, 20*time.Second, func() bool { return there() > before || there() == all }, "round %d adds nothing", i)
		time.Sleep(rand.N(20 * time.Millisecond)) // the fault's own moment
		client.Kill()
		n := there()
		if n%batch != 0 {
			t.Errorf("%d tasks are there after the kill: a batch is half there", n)
		}
		if n < all {
			partly++
		}
	}
	if partly == 0 && testredis.Soak() { // on a busy machine the client may end before this process is at its turn
		t.Error("no kill came in the middle: this proves nothing")
	}
	before := there()
	code, out, errs := w.Try("enqueue", "--file", file)
	said := regexp.MustCompile(`enqueued (\d+)(?:, (\d+) already there)?`).FindStringSubmatch(out + errs)
	if code != 0 || said == nil {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	added, _ := strconv.Atoi(said[1])
	known, _ := strconv.Atoi(said[2])
	late := known - before // a call of the killed client may still have been on its way
	if late != 0 && late != batch || added+known != all || there() != all {
		t.Errorf("%d were there; then %s; now %d are there, want %d", before, said[0], there(), all)
	}
	lanes := 0
	for _, key := range rdb.Keys(context.Background(), "onbeat:{"+w.NS+"}:due:*").Val() {
		lanes += int(rdb.ZCard(context.Background(), key).Val())
	}
	if lanes != all {
		t.Errorf("%d tasks are due, %d have a record", lanes, all)
	}
	w.Row("client killed in the middle of a batch", nil, fmt.Sprintf("%d times; %d of %d tasks were there before the last call: %s", partly, before, all, said[0]))
}
