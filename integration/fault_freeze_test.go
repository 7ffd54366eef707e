package integration

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// A leader is frozen past its lease while it runs a task, and the answer to the task's request comes meanwhile. When the
// leader wakes, another instance has the task. The old leader settles and starts nothing under its old claim. Then it joins
// again, and leads again.
func TestFault_aFrozenLeaderHasNoStaleEffectAndRejoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.Config("onbeat.yaml", "concurrency: 20\nlease: "+shortLease()+"\n", w.Beat("a", beatEvery))
	spare := w.Serve("spare", config, "--release", "v1")
	spare.Said("leads")
	frozen := w.Serve("frozen", config, "--release", "v2")
	frozen.Said("leads")
	n := testredis.Size(1, 20)
	for i := range n {
		id := fmt.Sprintf("long-%d", i)
		w.Must("enqueue", "http", "--id", id, "--keep", "1h", "--payload", w.Payload("?for=1500ms"))
		if first := w.Arrived(id); first.Release != "v2" {
			t.Fatalf("%s began on %s, want the leader v2", id, first.Release)
		}
		frozen.Send(trial.SigStop)
		testredis.Eventually(t, 20*time.Second, func() bool { return len(w.Task(id)) == 2 }, "nobody took %s over", id)
		const lost = "lease lost: this instance's claims are void"
		noticed, led := frozen.Says(lost), frozen.Says("leads")
		frozen.Send(trial.SigCont)
		frozen.SaidTimes(lost, noticed+1)
		frozen.SaidTimes("leads", led+1)
		testredis.Eventually(t, 20*time.Second, func() bool { return w.show(id).State == "done" }, "%s is not done", id)
		list := w.Task(id)
		if len(list) != 2 || list[1].Release != "v1" || list[1].Attempt != 2 || list[1].Fence <= list[0].Fence {
			t.Errorf("%s arrived as %s, want a second attempt on the spare, with a larger fence", id, trial.Describe(list))
		}
		if got := w.show(id); got.Attempt != 2 && got.Attempts != 2 {
			t.Errorf("%s was settled by the stale run: %+v", id, got)
		}
		w.Grow(10, "the beat stopped after the frozen one woke")
	}
	frozen.Stop()
	ended := time.Now()
	spare.Stop()
	w.wantBeats("leader frozen past its lease ("+shortLease()+"), and woken", ended, []string{"a"}, fmt.Sprintf("%d times", n))
}

// shown is the output of `onbeat tasks show --json`.
type shown struct {
	State    string `json:"state"`
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
}

func (w *world) show(id string) (s shown) {
	w.Helper()
	if code, out, _ := w.Try("tasks", "show", id, "--json"); code == 0 {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			w.Fatalf("tasks show: %v in %s", err, out)
		}
	}
	return s
}
