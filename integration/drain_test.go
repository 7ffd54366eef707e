package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// patient hands requests to the recorder and counts how each ended: answered, or cut off by whoever sent it.
type patient struct {
	*httptest.Server
	answered, cut atomic.Int64
}

func (w *world) patient() *patient {
	p := &patient{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.rec.ServeHTTP(rw, req)
		if req.Context().Err() != nil {
			p.cut.Add(1)
			return
		}
		p.answered.Add(1)
	}))
	w.Cleanup(p.Close)
	return p
}

// Runs that are longer than the rollout finish on the old instance. Those that are longer than the drain have their
// context cancelled, are handed back without costing an attempt, and run on the new one.
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
			receiver := w.patient()
			config := w.config("onbeat.yaml", "drain: "+c.drain+"\n")
			old := w.serve("v1", config, "--release", "v1")
			old.said("leads")
			for i := range tasks {
				w.must("enqueue", "http", "--id", fmt.Sprintf("long-%d", i), "--payload", fmt.Sprintf(`{"url":%q}`, receiver.URL+"/?for=3s"))
			}
			testredis.Eventually(t, 10*time.Second, func() bool { return w.rec.count() == tasks }, "the tasks do not start")
			next := w.serve("v2", config, "--release", "v2")
			next.said("leads")
			old.stop()
			testredis.Eventually(t, 20*time.Second, func() bool { return receiver.answered.Load() == tasks }, "they never finish")
			next.stop()

			if cut := receiver.cut.Load(); int(cut) != tasks*(len(c.releases)-1) {
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
	for _, a := range w.rec.all() {
		if a.id != id {
			continue
		}
		on = append(on, a.release)
		if a.attempt != 1 {
			w.Errorf("%s: attempt %d: handing back must not count one", id, a.attempt)
		}
		if a.fence <= fence {
			w.Errorf("%s: fence %d after %d: it must rise", id, a.fence, fence)
		}
		fence = a.fence
	}
	if strings.Join(on, " ") != strings.Join(releases, " ") {
		w.Errorf("%s ran on %v, want %v", id, on, releases)
	}
	if out := w.must("tasks", "show", id, "--json"); !contains(out, `"done"`) {
		w.Errorf("%s is not done: %s", id, out)
	}
}

// A schedule whose runs take 3 s, several at a time, goes through rollouts beside the fast ones: every run finishes where
// it began, none runs twice, and nobody waits for them.
func TestDrain_slowRunsFinishWhileTheBeatGoesOn(t *testing.T) {
	const every = 500 * time.Millisecond
	f := newFleet(t, "")
	receiver := f.patient()
	slow := strings.Replace(f.beat("slow", every), f.rec.URL+"/slow", receiver.URL+"/slow?for=3s", 1)
	live := f.release("v1", slow).up(1)
	versions := []string{"v1"}
	f.goesOn(10)
	for n := range size(1, 5) {
		version := fmt.Sprintf("v%d", n+2)
		live = f.release(version, slow).rollout(live)
		versions = append(versions, version)
		f.goesOn(5)
	}
	f.ends(live)

	got := f.judge(every, f.ended.Add(-2*every), "slow")
	f.wantWhole("slow", got)
	f.wantAuditAgrees("slow")
	if cut, answered := receiver.cut.Load(), receiver.answered.Load(); cut > 0 || int(answered) != got.slots {
		t.Errorf("%d runs of 3 s were cancelled, %d finished, of %d slots", cut, answered, got.slots)
	}
	f.wantReigns(versions...)
	f.wantSteady("runs of 3 s through rollouts", 2*fleetEvery, fmt.Sprintf("%d slow runs finished", got.slots))
}
