package integration

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
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

// A primary hangs, and so does its replica: nobody takes over. The partitions of the other nodes keep the beat, the commands say which
// partitions do not answer, and the instances stay ready.
func TestPartitions_aNodeThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t, "--cluster-require-full-coverage", "no")
	w := worldOn(t, c.URL())
	names, schedules := w.twenty()
	config := w.Config("one.yaml", "partitions: 6\nconcurrency: 40\nrelease: v1\napi: {listen: '127.0.0.1:0'}\n", schedules...)
	p := w.Serve("one", config)
	p.Said("ready")
	w.Grow(400, "nothing arrives")

	key := func(partition int) string { return fmt.Sprintf("onbeat:{%s#%d}:meta", w.NS, partition) }
	m := split.Map{Partitions: 6}
	var dead *testredis.Server // of a primary that has not all schedules
	var well []string
	for at := 1; at <= 6 && len(well) == 0; at++ {
		dead = c.Owner(t, key(at))
		for _, name := range names {
			if c.Owner(t, key(m.Of(name))) != dead {
				well = append(well, name)
			}
		}
	}
	i := slices.Index(c.Nodes, dead)
	replica := c.Nodes[(i+3)%6]
	replica.Pause()
	dead.Pause()
	hung := time.Now()
	counts := map[string]int{}
	for _, name := range well {
		counts[name] = len(w.Of(name))
	}
	testredis.Eventually(t, 60*time.Second, func() error {
		code, out, errs := w.Try("status", "-c", config) // the config has the number of partitions, whichever node hangs
		if code != 1 || !strings.Contains(out, "partition") {
			return fmt.Errorf("%d %s %s", code, out, errs)
		}
		return nil
	}, "the status does not name the partitions")
	for _, name := range well {
		testredis.Eventually(t, 30*time.Second, func() bool { return len(w.Of(name)) >= counts[name]+50 }, "%s does not keep the beat", name)
	}
	resp, err := http.Get("http://" + regexp.MustCompile(`"url":"http://([^"]+)"`).FindStringSubmatch(p.Log())[1] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("readyz says %d while most partitions are well", resp.StatusCode)
	}
	ended := time.Now()
	dead.Resume()
	replica.Resume()
	w.Grow(400, "the beat does not go on")
	p.Stop()
	for _, name := range well { // the node that hung is of no concern to them
		list := slices.DeleteFunc(slices.Clone(w.Of(name)), func(a trial.Arrival) bool { return a.At.Before(hung) || a.At.After(ended) })
		for i := range list {
			if late := list[i].At.Sub(list[i].Slot); late > 2*time.Second {
				t.Errorf("%s: %v late", name, late)
			}
		}
	}
}
