package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// Every command of the program, and an instance, on a cluster of three primaries: no script asks for keys of two nodes.
// Then the primary that has the namespace is killed, and the beat goes on with its replica.
func TestFailover_clusterTakesEveryCommandAndPromotesAReplica(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	w := worldOn(t, c.URL())
	names, schedules := w.twenty()
	p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 40\n", schedules...))
	p.Said("leads")
	w.everyCommand("before")
	w.Grow(400, "nothing arrives")

	key := "onbeat:{" + w.NS + "}:meta"
	primary := c.Owner(t, key)
	killed := time.Now()
	primary.Kill()
	testredis.Eventually(t, 40*time.Second, func() bool { return c.Owner(t, key) != primary }, "nobody is promoted")
	promoted := time.Now()
	w.Grow(800, "the beat does not go on")
	w.everyCommand("after")
	ended := time.Now()
	p.Stop()

	w.wantRepeatsWithin(names, killed.Add(-time.Second), promoted)
	w.WantAuditAgrees(names...)
	w.failoverRow("Cluster of three, a primary killed", names, ended, fmt.Sprintf("promoted after %s", promoted.Sub(killed).Round(time.Millisecond)))
	if log := p.Log(); strings.Contains(log, "CROSSSLOT") {
		t.Error("the instance asked for keys of two nodes")
	}
}

// everyCommand runs each command that asks Redis for something, at least once with success.
func (w *world) everyCommand(round string) {
	w.Helper()
	id := func(s string) string { return s + "-" + round }
	hand := w.File("hand.yaml", "schedules:\n"+w.Beat("hand", time.Hour))
	file := w.File("tasks.jsonl", strings.Repeat(`{"type":"echo","key":"k","payload":{}}`+"\n", 50))
	fails := fmt.Sprintf(`{"url":%q,"expect":[500]}`, w.Rec.URL("fails"))
	steps := [][]string{
		{"enqueue", "echo", "--id", id("done")},
		{"enqueue", "echo", "--unique", id("u")},
		{"enqueue", "echo", "--key", "k"},
		{"enqueue", "--file", file},
		{"enqueue", "echo", "--id", id("later"), "--in", "1h", "--priority", "high", "--queue", "q"},
		{"tasks", "show", id("later")},
		{"tasks", "list"},
		{"tasks", "cancel", id("later")},
		{"enqueue", "echo", "--id", id("never"), "--in", "1h"},
		{"tasks", "delete", id("never")},
		{"enqueue", "http", "--id", id("dead"), "--max-attempts", "1", "--payload", fails},
		nil, // it dies
		{"tasks", "list", "--state", "dead"},
		{"tasks", "retry", id("dead")},
		{"schedules", "apply", hand},
		{"schedules", "list"},
		{"schedules", "show", "hand"},
		{"schedules", "pause", "hand"},
		{"schedules", "resume", "hand"},
		{"schedules", "trigger", "hand"},
		{"schedules", "backfill", "hand", "--from", "3h"},
		{"schedules", "delete", "hand"},
		{"instances"},
		{"events"},
		{"audit"},
		{"doctor"},
	}
	for _, args := range steps {
		if args == nil {
			testredis.Eventually(w, 20*time.Second, func() bool {
				code, out, _ := w.Try("tasks", "show", id("dead"), "--json")
				return code == 0 && strings.Contains(out, `"dead"`)
			}, "the task that fails does not die")
			continue
		}
		code, out, errs := w.Try(args...)
		if code != 0 || strings.Contains(out+errs, "CROSSSLOT") {
			w.Errorf("onbeat %s: exit %d: %s%s", strings.Join(args, " "), code, out, errs)
		}
	}
}
