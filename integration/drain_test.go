package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// A run that is longer than the rollout finishes on the old instance; one that is longer than the drain is handed back
// without costing an attempt, and runs on the new one.
func TestPromise3_aRunSurvivesTheRolloutOrIsHandedBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, drain string
		arrivals    int
	}{{"finishes", "20s", 1}, {"handed back", "500ms", 2}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			config := w.config("onbeat.yaml", "drain: "+c.drain+"\n")
			old := w.serve("v1", config, "--release", "v1")
			old.said("leads")
			w.must("enqueue", "http", "--id", "long", "--payload", fmt.Sprintf(`{"url":%q}`, w.rec.URL+"/?for=3s"))
			testredis.Eventually(t, 10*time.Second, func() bool { return w.rec.count() == 1 }, "the task does not start")
			next := w.serve("v2", config, "--release", "v2")
			next.said("leads")
			old.stop()
			testredis.Eventually(t, 20*time.Second, func() bool {
				code, out, _ := w.run("", "tasks", "show", "long", "--json")
				return code == 0 && contains(out, `"done"`)
			}, "the task is never done")
			next.stop()
			list := w.rec.all()
			if len(list) != c.arrivals {
				t.Errorf("it arrived %d times, want %d: %s", len(list), c.arrivals, describe(list))
			}
			for _, a := range list {
				if a.attempt != 1 {
					t.Errorf("attempt %d: handing back must not count one", a.attempt)
				}
			}
			if n := len(list); n == 2 && list[1].fence <= list[0].fence {
				t.Errorf("fence %d after %d: it must rise", list[1].fence, list[0].fence)
			}
		})
	}
}
