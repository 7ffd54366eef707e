package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// A leader is frozen past its lease while it runs a task whose answer comes meanwhile. When it wakes, the task is
// another's: it settles nothing and starts nothing under its old claim. Then it rejoins, and leads again.
func TestFault_aFrozenLeaderHasNoStaleEffectAndRejoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("onbeat.yaml", "concurrency: 20\nlease: 1s\n", w.beat("a", beatEvery))
	spare := w.serve("spare", config, "--release", "v1")
	spare.said("leads")
	frozen := w.serve("frozen", config, "--release", "v2")
	frozen.said("leads")
	n := size(2, 20)
	for i := range n {
		id := fmt.Sprintf("long-%d", i)
		w.must("enqueue", "http", "--id", id, "--keep", "1h", "--payload", fmt.Sprintf(`{"url":%q}`, w.rec.URL+"/?for=1500ms"))
		if first := w.arrived(id); first.release != "v2" {
			t.Fatalf("%s began on %s, want the leader v2", id, first.release)
		}
		frozen.signal(syscall.SIGSTOP)
		again := func() (list []arrival) {
			for _, a := range w.rec.all() {
				if a.id == id {
					list = append(list, a)
				}
			}
			return list
		}
		testredis.Eventually(t, 20*time.Second, func() bool { return len(again()) == 2 }, "nobody took %s over", id)
		lost := strings.Count(frozen.log.String(), "lease lost")
		leads := strings.Count(frozen.log.String(), `"message":"leads"`)
		frozen.signal(syscall.SIGCONT)
		testredis.Eventually(t, 20*time.Second, func() bool {
			log := frozen.log.String()
			return strings.Count(log, "lease lost") > lost && strings.Count(log, `"message":"leads"`) > leads
		}, "the frozen one did not notice, or did not lead again")
		testredis.Eventually(t, 20*time.Second, func() bool { return w.show(id).State == "done" }, "%s is not done", id)
		list := again()
		if len(list) != 2 || list[1].release != "v1" || list[1].attempt != 2 || list[1].fence <= list[0].fence {
			t.Errorf("%s arrived as %s, want a second attempt on the spare, with a larger fence", id, describe(list))
		}
		if got := w.show(id); got.Attempt != 2 && got.Attempts != 2 {
			t.Errorf("%s was settled by the stale run: %+v", id, got)
		}
		w.grow(10, "the beat stopped after the frozen one woke")
	}
	frozen.stop()
	ended := time.Now()
	spare.stop()
	w.wantBeats("leader frozen past its lease (1s), and woken", ended, []string{"a"}, fmt.Sprintf("%d times", n))
}

// shown is what `onbeat tasks show --json` says of a task.
type shown struct {
	State    string `json:"state"`
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
}

func (w *world) show(id string) (s shown) {
	w.Helper()
	if code, out, _ := w.run("", "tasks", "show", id, "--json"); code == 0 {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			w.Fatalf("tasks show: %v in %s", err, out)
		}
	}
	return s
}
