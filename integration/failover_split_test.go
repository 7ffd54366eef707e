package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// possiblyRepeated returns how many slots may have run twice, by the audit.
func (w *world) possiblyRepeated() (n int) {
	w.Helper()
	_, out, _ := w.Try("audit", "--json")
	var report struct {
		Schedules []struct {
			Repeated int `json:"possibly_repeated"`
		} `json:"schedules"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		w.Fatalf("audit: %v: %s", err, out)
	}
	for _, s := range report.Schedules {
		n += s.Repeated
	}
	return n
}

// wantRepeatsReported fails if a slot of any schedule is missing, or if a slot ran twice whose first run was not in a time
// that onbeat reported as lost. It returns how many slots ran twice, and how many there are.
func (w *world) wantRepeatsReported(names []string) (repeats, all int) {
	w.Helper()
	losses := w.losses()
	reported := func(at time.Time) bool {
		return slices.ContainsFunc(losses, func(l loss) bool { return !at.Before(l.kept.Add(-skew)) && !at.After(l.found.Add(skew)) })
	}
	for _, name := range names {
		slots := rig.BySlot(w.T, w.Of(name))
		times := slices.Sorted(maps.Keys(slots))
		for i, ms := range times {
			all++
			if i > 0 && ms-times[i-1] != beatEvery.Milliseconds() {
				w.Errorf("%s: %d ms between slots %d and %d", name, ms-times[i-1], times[i-1], ms)
			}
			if again := slots[ms]; len(again) > 1 && !rig.Rising(again) { // else an instance lost its lease, and a later attempt followed
				repeats++
				if !reported(again[0].At) {
					w.Errorf("%s: slot %d arrived %d times, in no time that was reported: %s", name, ms, len(again), trial.Describe(again))
				}
			}
		}
	}
	if marked := w.possiblyRepeated(); marked < repeats {
		w.Errorf("%d slots ran twice, and the audit marks %d as possibly repeated", repeats, marked)
	}
	if repeats > 0 && len(losses) == 0 {
		w.Error("nothing was reported")
	}
	return repeats, all
}

// caughtUp waits until slots are on time again.
func (w *world) caughtUp() {
	w.Helper()
	testredis.Eventually(w.T, 40*time.Second, func() bool {
		list := w.Rec.Arrivals()
		last := list[max(0, len(list)-40):]
		return !slices.ContainsFunc(last, func(a trial.Arrival) bool { return a.At.Sub(a.Slot) > time.Second })
	}, "what is late has run")
}

// planned makes the sentinels promote a replica. The old primary goes on for a second or two.
func planned(t *testing.T, g *testredis.SentinelGroup) { g.Failover(t) }

// stopped stops the primary until a replica is promoted. Then it lets the old primary go on, still as a primary.
func stopped(t *testing.T, g *testredis.SentinelGroup) {
	old := g.Led(t)
	old.Pause()
	defer old.Resume()
	testredis.Eventually(t, 40*time.Second, func() bool { return g.Leading(t) != old.Addr() }, "nobody is promoted")
}

// Two primaries for a moment, under three instances. The claims of the old primary are held back, because it saw a replica
// leave. No slot runs twice with strict durability of all replicas, nor if the instances pause.
func TestFailover_twoPrimaries(t *testing.T) {
	testredis.OnlyInASoak(t)
	t.Parallel()
	strict := "durability: {replicas: 2, strict: true}\n"
	for _, c := range []struct {
		name, head string
		happens    func(*testing.T, *testredis.SentinelGroup)
		pause      bool
		most       float64 // of the slots
	}{
		{"planned, strict durability of all replicas", strict, planned, false, 0},
		{"planned", "", planned, false, 0.02},
		{"planned, in a pause", "", planned, true, 0},
		{"the primary stopped, strict durability of all replicas", strict, stopped, false, 0},
		{"the primary stopped", "", stopped, false, 0.05},
		{"planned, durability of 1 replica", "durability: {replicas: 1}\n", planned, false, 0.02},
		{"planned, strict durability of 1 of 2 replicas", "durability: {replicas: 1, strict: true}\n", planned, false, 0.02},
	}[:testredis.Size(2, 7)] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := testredis.Sentinels(t)
			w := worldOn(t, g.URL())
			names, schedules := w.twenty()
			config := w.Config("onbeat.yaml", "concurrency: 40\nlease: 5s\n"+c.head, schedules...)
			var fleet []*rig.Process
			for i := range 3 {
				fleet = append(fleet, w.Serve(fmt.Sprint("p", i), config))
				fleet[i].Said("registered")
			}
			w.Grow(600, "nothing arrives")
			n := testredis.Size(1, 50)
			for range n {
				if c.pause {
					w.Must("instances", "pause", "--for", "1m")
				}
				c.happens(t, g)
				g.AwaitWhole(t)
				if c.pause {
					w.Must("instances", "resume")
				}
				w.Grow(600, "the beat does not go on")
				w.caughtUp()
			}
			ended := time.Now()
			for _, p := range fleet {
				p.Stop()
			}
			repeats, all := w.wantRepeatsReported(names)
			if share := float64(repeats) / float64(all); share > c.most {
				t.Errorf("%d of %d slots ran twice: %.1f %%, at most %.1f %% are to", repeats, all, 100*share, 100*c.most)
			}
			w.failoverRow("Sentinel, "+c.name, names, ended,
				fmt.Sprintf("%d failovers; %d of %d slots ran twice, the audit marks %d", n, repeats, all, w.possiblyRepeated()))
		})
	}
}
