package producer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// jobLane is where the slots of schedules lie.
var jobLane = queue.Lane{Queue: task.DefaultQueue, Type: "job"}

// claim has the instance of a term take what is due.
func (w *world) claim(term queue.Term, seq int64) []*task.Task {
	w.Helper()
	r, err := w.q.Cycle(w.Context(), &queue.CycleRequest{
		Instance: term.Instance, Gen: term.Gen, Seq: seq, Want: 10, Lanes: []queue.LaneClaim{{Lane: jobLane}},
	})
	must(w, err)
	return r.Claimed
}

// Everybody crashed while a slot ran. When the gate opens again that run holds its key no more, or the latest missed
// slot would be dropped for overlapping it.
func TestTakeStock_takesBackTheRunsOfTheDeadBeforeTheGateOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		w := worldIn(t, mini.Client, "dead")
		_, err := w.Apply(t.Context(), Schedule{
			Name: "s", Rule: schedule.Rule{Every: time.Second, Overlap: schedule.OverlapSkip}, Task: "job", MaxAttempts: 1,
		})
		must(t, err)
		tn := w.lead("dead", "", nil)
		must(t, tn.takeStock(t.Context()))
		must(t, tn.push(t.Context()))
		time.Sleep(time.Millisecond)
		if got := w.claim(tn.term, 1); len(got) != 1 {
			t.Fatalf("%d slots run", len(got))
		}
		time.Sleep(2 * time.Minute)

		k := w.q.Keys()
		var held []string // as the gate opened
		var mu sync.Mutex
		opened := false
		mini.Client.AddHook(afterwards(func([]any) {
			mu.Lock()
			defer mu.Unlock()
			if !opened && mini.HGet(k.Leader, "open") == "1" && mini.HGet(k.Leader, "id") != "dead" {
				opened = true
				held, _ = mini.HKeys(k.Active)
			}
		}))
		n := w.start("", nil)
		w.leads(n)
		mu.Lock()
		if len(held) > 0 {
			t.Errorf("the gate is open, and a dead run holds %v", held)
		}
		mu.Unlock()
		if dead := w.rdb.ZCard(t.Context(), k.Dead).Val(); dead != 1 {
			t.Errorf("%d runs are dead, want the one that had one attempt", dead)
		}
		n.stop()
	})
}
