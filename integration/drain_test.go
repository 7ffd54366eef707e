package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// ends counts how the requests of a schedule or of tasks ended: answered, or given up by their instance.
func ends(list []trial.Arrival) (answered, cut int) {
	for _, a := range list {
		switch {
		case a.GivenUp:
			cut++
		case !a.Ended.IsZero():
			answered++
		}
	}
	return answered, cut
}

// Runs that are longer than the rollout finish on the old instance. Runs that are longer than the drain are cancelled and
// handed back, which costs no attempt, and run on the new instance.
func TestPromise3_aRunSurvivesTheRolloutOrIsHandedBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, drain string
		releases    []string // that each task runs on
	}{{"finishes", "20s", []string{"v1"}}, {"handed back", "500ms", []string{"v1", "v2"}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const tasks = 5
			w := newWorld(t)
			config := w.Config("onbeat.yaml", "drain: "+c.drain+"\n")
			old := w.Serve("v1", config, "--release", "v1")
			old.Said("leads")
			var lines strings.Builder
			for i := range tasks {
				fmt.Fprintf(&lines, `{"type":"http","id":"long-%d","payload":%s}`+"\n", i, w.Payload("?for=4s"))
			}
			w.Must("enqueue", "--file", w.File("tasks.jsonl", lines.String()))
			testredis.Eventually(t, 30*time.Second, func() bool { return w.Rec.Count() == tasks }, "the tasks do not start")
			next := w.Serve("v2", config, "--release", "v2")
			next.Said("leads")
			old.Stop()
			testredis.Eventually(t, 20*time.Second, func() bool {
				answered, _ := ends(w.Rec.Arrivals())
				return answered == tasks
			}, "they never finish")
			next.Stop()

			if _, cut := ends(w.Rec.Arrivals()); cut != tasks*(len(c.releases)-1) {
				t.Errorf("%d runs were cancelled, want %d", cut, tasks*(len(c.releases)-1))
			}
			for i := range tasks {
				w.wantRuns(fmt.Sprintf("long-%d", i), c.releases)
			}
		})
	}
}

// wantRuns fails unless a task ran once on each of these releases, under rising fences, as its first attempt each time,
// and is done.
func (w *world) wantRuns(id string, releases []string) {
	w.Helper()
	var on []string
	var fence int64
	for _, a := range w.Task(id) {
		on = append(on, a.Release)
		if a.Attempt != 1 {
			w.Errorf("%s: attempt %d: handing back must not count one", id, a.Attempt)
		}
		if a.Fence <= fence {
			w.Errorf("%s: fence %d after %d: it must rise", id, a.Fence, fence)
		}
		fence = a.Fence
	}
	if strings.Join(on, " ") != strings.Join(releases, " ") {
		w.Errorf("%s ran on %v, want %v", id, on, releases)
	}
	if out := w.Must("tasks", "show", id, "--json"); !contains(out, `"done"`) {
		w.Errorf("%s is not done: %s", id, out)
	}
}

// A schedule whose runs take 3 s, several at a time, goes through rollouts beside the fast ones: every run finishes where
// it began, none runs twice, and no other schedule waits for them.
func TestDrain_slowRunsFinishWhileTheBeatGoesOn(t *testing.T) {
	testredis.OnlyInASoak(t)
	const every = 500 * time.Millisecond
	f := newFleet(t, "")
	slow := f.BeatTo("slow?for=3s", "slow", every)
	live := f.release("v1", slow).up(1)
	versions := []string{"v1"}
	f.goesOn(10)
	for n := range 5 {
		version := fmt.Sprintf("v%d", n+2)
		live = f.release(version, slow).rollout(live)
		versions = append(versions, version)
		f.goesOn(5)
	}
	f.ends(live)

	got := f.Judge(every, f.ended.Add(-2*every), "slow")
	f.WantWhole("slow", got)
	f.WantAuditAgrees("slow")
	if answered, cut := ends(f.Of("slow")); cut > 0 || answered != got.Slots {
		t.Errorf("%d runs of 3 s were cancelled, %d finished, of %d slots", cut, answered, got.Slots)
	}
	f.wantReigns(versions...)
	f.wantSteady("runs of 3 s through rollouts", 2*fleetEvery, fmt.Sprintf("%d slow runs finished", got.Slots))
}
