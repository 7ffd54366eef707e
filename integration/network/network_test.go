package network

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A Redis that answers after half a second or more: slots run later by that much, and nothing else changes.
func TestNetwork_aSlowRedisIsOnlySlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.serve("slow", "5s")
	n.Said("leads")
	w.Grow(20, "nothing arrives")
	n.toxic("latency", "upstream", `"latency": 250, "jitter": 100`)
	n.toxic("latency", "downstream", `"latency": 250, "jitter": 100`)
	time.Sleep(testredis.Size(6*time.Second, time.Minute)) // the fault
	n.heal()
	w.Grow(20, "the beat stopped")
	n.stop()
	if n.Says("leads") != 1 || n.Says("registered") != 1 {
		t.Error("it lost its lease, though every answer came in time")
	}
	if j := w.wantSteady("Redis answers after 0.3 to 0.7 s"); j.Repeated > 0 || j.Max > 4000 || j.Max < 400 {
		t.Errorf("from slot to arrival at most %.1f ms, %d repeated: want some round trips, and none repeated", j.Max, j.Repeated)
	}
}

// Connections are dropped again and again, in the middle of their data: refused for a moment, or reset.
func TestNetwork_droppedConnectionsDropNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.serve("dropped", "2s")
	n.Said("leads")
	w.Grow(20, "nothing arrives")
	times := 0
	for until := time.Now().Add(testredis.Size(6*time.Second, time.Minute)); time.Now().Before(until); times++ {
		if times%2 == 0 {
			n.down()
			time.Sleep(rand.N(100 * time.Millisecond)) // the outage
			n.up()
		} else {
			n.toxic("reset_peer", "downstream", `"timeout": 0`)
			time.Sleep(rand.N(100 * time.Millisecond)) // the outage
			n.heal()
		}
		time.Sleep(rand.N(300 * time.Millisecond)) // between two
	}
	w.Grow(20, "the beat stopped")
	n.stop()
	if n.Says("leads") != 1 {
		t.Error("it lost its lease, though Redis was there most of the time")
	}
	w.wantSteady("connections dropped again and again", fmt.Sprintf("%d times", times))
}

// The leader is cut off for longer than its lease. It gives its runs up before another instance may begin them. The other
// instance leads within about a lease, and the first one comes back and leads again.
func TestNetwork_theLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	both := []string{"upstream", "downstream"}
	for name, directions := range map[string][]string{"both ways": both, "replies only": both[1:], "requests only": both[:1]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			spare := w.serve("spare", "1s")
			spare.Said("leads")
			leader := w.serve("leader", "1s")
			leader.Said("leads")
			w.Grow(10, "nothing arrives")
			if first := w.long("long", 6*time.Second); first.Release != "leader" {
				t.Fatalf("the task began on %s, want the leader", first.Release)
			}
			leader.swallow(directions...)
			began := time.Now()
			spare.SaidTimes("leads", 2)
			took := time.Since(began)
			testredis.Eventually(t, 20*time.Second, func() bool { return len(w.Task("long")) == 2 }, "nobody took the task over")
			leader.Said("lease lost: this instance's claims are void")
			time.Sleep(time.Second) // the rest of the fault: the spare leads alone
			leader.heal()
			leader.SaidTimes("leads", 2)
			w.Grow(20, "the beat stopped")
			testredis.Eventually(t, 20*time.Second, func() bool { return !w.Task("long")[1].Ended.IsZero() }, "the task never ends")
			leader.stop()
			spare.stop()
			runs := w.Task("long")
			if !runs[0].GivenUp || !runs[0].Ended.Before(runs[1].At) || runs[1].Fence <= runs[0].Fence || runs[1].Release != "spare" {
				t.Errorf("the task ran as %+v: want the first given up before the second began, elsewhere, with a larger fence", runs)
			}
			if took > 3*time.Second {
				t.Errorf("the spare led after %s, want a lease (1s) or so", took)
			}
			w.wantSteady("leader cut off (lease 1s), "+name, fmt.Sprintf("the spare led after %s; the first run was given up %s before the second began",
				took.Round(time.Millisecond), runs[1].At.Sub(runs[0].Ended).Round(time.Millisecond)))
		})
	}
}

// An instance that does not lead is cut off: the beat does not change, and when the instance is back it stands by again.
func TestNetwork_aStandbyIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spare := w.serve("spare", "1s")
	spare.Said("leads")
	leader := w.serve("leader", "1s")
	leader.Said("leads")
	spare.Said("no longer leads")
	w.Grow(10, "nothing arrives")
	spare.swallow("upstream", "downstream")
	spare.Said("lease lost: this instance's claims are void")
	time.Sleep(testredis.Size(2*time.Second, 20*time.Second)) // the rest of the fault
	spare.heal()
	spare.SaidTimes("registered", 2)
	spare.SaidTimes("ready", 2)
	w.Grow(20, "the beat stopped")
	if leader.Says("leads") != 1 || leader.Says("no longer leads") != 0 || spare.Says("leads") != 1 {
		t.Error("the lead moved")
	}
	spare.stop()
	leader.stop()
	if j := w.wantSteady("standby cut off"); j.Gap > 1000 {
		t.Errorf("longest gap %.1f ms: the beat took notice", j.Gap)
	}
}
