package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

// The network divides a Sentinel group: the leader keeps the old primary and one sentinel; on the other side are two
// instances and two sentinels, which promote a replica. By default both sides run slots until the network heals, and onbeat
// reports that. With strict durability no slot runs twice. If all replicas must have a write, neither side begins a task
// until all are back. If one replica must have it, the majority goes on.
func TestFailover_divided(t *testing.T) {
	testredis.OnlyInASoak(t)
	t.Parallel()
	for _, c := range []struct {
		name, head string
		most       float64 // of the slots that may run twice
	}{
		{"strict durability of all replicas", "durability: {replicas: 2, strict: true}\n", 0},
		{"no durability", "", 1},
		{"strict durability of 1 of 2 replicas", "durability: {replicas: 1, strict: true}\n", 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := testredis.Sentinels(t)
			w := worldOn(t, g.URL())
			names, schedules := w.twenty()
			head := "concurrency: 40\nlease: 5s\n" + c.head
			fleet := []*rig.Process{w.Serve("a", w.Config("a.yaml", head, schedules...)), w.Serve("b", w.Config("b.yaml", head, schedules...))}
			for _, p := range fleet {
				p.Said("registered")
			}
			leader := w.Serve("c", w.Config("c.yaml", head, schedules...), "--redis", g.Minority())
			leader.Said("leads")
			w.Grow(600, "nothing arrives")
			const n = 5
			for range n {
				heal := g.Split(t)
				time.Sleep(10 * time.Second) // the fault
				heal()
				g.AwaitWhole(t)
				w.Grow(600, "the beat does not go on")
				w.caughtUp()
			}
			ended := time.Now()
			for _, p := range append(fleet, leader) {
				p.Stop()
			}
			repeats, all := w.wantRepeatsReported(names)
			if share := float64(repeats) / float64(all); share > c.most {
				t.Errorf("%d of %d slots ran twice: %.1f %%, at most %.1f %% are to", repeats, all, 100*share, 100*c.most)
			}
			if c.most == 1 && repeats == 0 {
				t.Error("no slot ran twice: the network was not divided")
			}
			w.failoverRow("Sentinel, network divided for 10 s, "+c.name, names, ended,
				fmt.Sprintf("%d times; %d of %d slots ran twice, the audit marks %d", n, repeats, all, w.possiblyRepeated()))
		})
	}
}
