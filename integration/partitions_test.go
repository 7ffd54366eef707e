package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A namespace of six partitions on a cluster of three primaries: one of them is killed, then a slot moves while another release is rolled
// out. No slot is missed, none is off the grid, and none runs twice but in the seconds before the failover.
func TestPartitions_clusterFailsOverMovesASlotAndRollsOut(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	w := worldOn(t, c.URL())
	names, schedules := w.twenty()
	serve := func(name, release string) interface {
		Said(string)
		Stop()
		Log() string
	} {
		return w.Serve(name, w.Config(name+".yaml", "partitions: 6\nconcurrency: 40\nconsume: release\nrelease: "+release+"\n", schedules...))
	}
	one, two := serve("one", "v1"), serve("two", "v1")
	one.Said("ready")
	two.Said("ready")
	w.everyCommand("before")
	w.Grow(400, "nothing arrives")

	key := func(partition int) string { return fmt.Sprintf("onbeat:{%s#%d}:meta", w.NS, partition) }
	primary := c.Owner(t, key(1))
	killed := time.Now()
	primary.Kill()
	testredis.Eventually(t, 40*time.Second, func() bool { return c.Owner(t, key(1)) != primary }, "nobody is promoted")
	promoted := time.Now()
	w.Grow(800, "the beat does not go on")

	moved := 0
	for i := 2; i <= 6 && moved == 0; i++ {
		for _, n := range c.Nodes[:3] {
			if n == c.Owner(t, key(i)) {
				moved = i
			}
		}
	}
	if moved == 0 {
		t.Fatal("all partitions lie on the node that was killed")
	}
	three, four := serve("three", "v2"), serve("four", "v2")
	three.Said("ready")
	move := c.BeginMove(t, key(moved))
	one.Stop()
	move.End()
	four.Said("ready")
	two.Stop()
	w.Grow(1200, "the beat does not go on")
	w.everyCommand("after")
	ended := time.Now()
	three.Stop()
	four.Stop()

	w.wantRepeatsWithin(names, killed.Add(-time.Second), promoted)
	w.WantAuditAgrees(names...)
	w.failoverRow("Six partitions on a cluster, a primary killed, a slot moved, a rollout", names, ended, fmt.Sprintf("promoted after %s", promoted.Sub(killed).Round(time.Millisecond)))
	for _, p := range []interface{ Log() string }{one, two, three, four} {
		if strings.Contains(p.Log(), "CROSSSLOT") {
			t.Error("an instance asked for keys of two nodes")
		}
	}
}
