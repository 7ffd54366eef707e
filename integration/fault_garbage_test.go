package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// 50 MB of garbage in the record of a due task: the task dies, once, its neighbours run, the beat goes on, and every
// command still answers.
func TestFault_garbageInARecordHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t)
	rdb := srv.Client()
	// The lease is long, because Redis answers no client while it reads 50 MB, and a lost lease would leave slots to the policy.
	config := w.Config("onbeat.yaml", "concurrency: 20\nlease: 60s\n", w.Beat("a", beatEvery), w.Beat("slots", time.Second))
	p := w.Serve("one", config)
	p.Said("leads")
	random := make([]byte, 50<<20)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(random)
	kinds := []struct {
		name   string
		record []byte
	}{
		{"headed", append([]byte("1.\x03\x04http"), random...)}, {"random", random}, // the first begins like a record
		{"zeros", make([]byte, 50<<20)}, {"lines", bytes.Repeat([]byte("\n"), 50<<20)},
	}[:testredis.Size(1, 4)]
	for _, kind := range kinds {
		name, record := kind.name, kind.record
		for _, id := range []string{"before-" + name, name, "behind-" + name} {
			w.Must("enqueue", "http", "--id", id, "--in", "1h", "--payload", w.Payload("neighbour"))
		}
		ctx := context.Background()
		if err := rdb.HSet(ctx, "onbeat:{"+w.NS+"}:tasks", name, record).Err(); err != nil {
			t.Fatal(err)
		}
		lanes := rdb.Keys(ctx, "onbeat:{"+w.NS+"}:due:*http").Val()
		if len(lanes) != 1 {
			t.Fatalf("lanes %v", lanes)
		}
		now := float64(time.Now().UnixMilli())
		for _, id := range []string{"before-" + name, name, "behind-" + name} { // they fall due now
			if err := rdb.ZAddXX(ctx, lanes[0], redis.Z{Score: now, Member: id}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		w.Arrived("before-" + name)
		w.Arrived("behind-" + name)
		testredis.Eventually(t, 2*time.Minute, func() bool { return w.dead(rdb, name) }, "the damaged task %s is not among the dead", name)
		w.Grow(5, "the beat stopped")
		testredis.Eventually(t, 2*time.Minute, func() bool {
			_, out, _ := w.Try("tasks", "list", "--state", "dead", "--json")
			return strings.Contains(out, `"`+name+`"`)
		}, "the list of dead tasks lacks %s", name)
		if code, out, errs := w.Try("tasks", "show", name); code != 0 || !strings.Contains(out, "unreadable task record") || len(out)+len(errs) > 1000 {
			t.Errorf("tasks show %s: exit %d, %.300s%.300s, want 0 and a few lines that say it is unreadable", name, code, out, errs)
		}
		for _, args := range [][]string{{"tasks", "list", "--json"}, {"instances"}, {"doctor"}, {"events"}} {
			if code, out, errs := w.Try(args...); code != 0 || len(out)+len(errs) > 100_000 {
				t.Errorf("%v: exit %d, %d bytes, %.300s", args, code, len(out)+len(errs), errs)
			}
		}
	}
	slot := w.damageSlot(rdb, "slots", random)
	testredis.Eventually(t, 2*time.Minute, func() bool { return w.dead(rdb, slot) }, "the damaged slot is not among the dead")
	w.Grow(10, "the beat stopped")
	most := mostMemory(p)
	ended := time.Now() // slots that are due by then may wait behind Redis, which sends 50 MB
	testredis.Eventually(t, time.Minute, func() bool {
		return slices.ContainsFunc(w.Of("a"), func(a trial.Arrival) bool { return a.Slot.After(ended) })
	}, "the beat has not caught up")
	p.Stop()
	for _, a := range w.Rec.Arrivals() {
		if a.ID == slot || a.ID == "headed" || a.ID == "random" || a.ID == "zeros" || a.ID == "lines" {
			t.Errorf("%s was run", a.ID)
		}
	}
	if n := len(p.Log()); n > 1<<20 {
		t.Errorf("it logged %d bytes", n)
	}
	w.wantBeats("50 MB of garbage in the record of a due task", ended, []string{"a"}, fmt.Sprintf("%d kinds of it", len(kinds)), "most memory of the instance "+most)
}

// dead reports whether a task is among the dead. It reads no record: Redis answers nobody else while it sends 50 MB.
func (w *world) dead(rdb *redis.Client, id string) bool {
	return rdb.ZScore(context.Background(), "onbeat:{"+w.NS+"}:dead", id).Err() == nil
}

// damageSlot puts garbage into the record of a slot that lies some seconds ahead, and returns its ID.
func (w *world) damageSlot(rdb *redis.Client, schedule string, garbage []byte) (id string) {
	w.Helper()
	var page struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	out := w.Must("tasks", "list", "--state", "planned", "--schedule", schedule, "--json")
	if err := json.Unmarshal([]byte(out), &page); err != nil || len(page.Items) == 0 {
		w.Fatalf("%v: no slot of %s lies ahead in %s", err, schedule, out)
	}
	id = page.Items[min(3, len(page.Items)-1)].ID
	if err := rdb.HSet(context.Background(), "onbeat:{"+w.NS+"}:tasks", id, garbage).Err(); err != nil {
		w.Fatal(err)
	}
	return id
}

// mostMemory returns the most memory that a process has had, if the system tells.
func mostMemory(p *rig.Process) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return "unknown"
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(size)
		}
	}
	return "unknown"
}
