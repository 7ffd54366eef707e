package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// twenty are the schedules of a failover. All slots of a time without an instance must run, so that none may be missing.
func (w *world) twenty() (names, schedules []string) {
	for i := range 20 {
		names = append(names, fmt.Sprintf("beat-%02d", i))
		schedules = append(schedules, w.Beat(names[i], beatEvery, "missed: all"))
	}
	return names, schedules
}

// wantRepeatsWithin fails unless every slot of each schedule arrived, on one grid. If a slot arrived more than once, the first
// time must lie between two moments. It returns how many such slots there are.
func (w *world) wantRepeatsWithin(names []string, from, to time.Time) (repeats int) {
	w.Helper()
	for _, name := range names {
		slots := rig.BySlot(w.T, w.Of(name))
		times := slices.Sorted(maps.Keys(slots))
		if len(times) == 0 {
			w.Errorf("%s: nothing arrived", name)
		}
		for i, ms := range times {
			if i > 0 && ms-times[i-1] != beatEvery.Milliseconds() {
				w.Errorf("%s: %d ms between slots %d and %d, want %d", name, ms-times[i-1], times[i-1], ms, beatEvery.Milliseconds())
			}
			again := slots[ms]
			if len(again) == 1 {
				continue
			}
			repeats++
			if first := again[0].At; first.Before(from) || first.After(to) {
				w.Errorf("%s: slot %d arrived %d times, first at %s, not between %s and %s: %s", name, ms, len(again),
					first.Format("05.000"), from.Format("05.000"), to.Format("05.000"), trial.Describe(again))
			}
		}
	}
	return repeats
}

// failoverRow reports a failover. Its duplicated slots include those that ran twice because Redis lost writes.
func (w *world) failoverRow(scenario string, names []string, ended time.Time, besides ...string) {
	w.Helper()
	w.Row(scenario, w.Judge(beatEvery, ended.Add(-time.Second), names...), besides...)
}

// loss is a time whose writes Redis lost, as instances reported it. Each instance reports its own, and overlapping reports
// count as one loss.
type loss struct{ kept, known, found time.Time }

func (w *world) losses() (list []loss) {
	w.Helper()
	moment := func(text string) time.Time {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		return time.UnixMilli(ms)
	}
	for _, e := range w.events("lost writes") {
		l := loss{moment(e.Fields["kept"]), moment(e.Fields["known"]), e.At}
		n := len(list) - 1
		if n < 0 || l.kept.After(list[n].found) {
			list = append(list, l)
			continue
		}
		for _, of := range []struct{ mine, its *time.Time }{{&list[n].known, &l.known}, {&list[n].found, &l.found}} {
			if of.its.After(*of.mine) {
				*of.mine = *of.its
			}
		}
		if l.kept.Before(list[n].kept) {
			list[n].kept = l.kept
		}
	}
	return list
}

// epochs returns the epochs in which a process led.
func epochs(p *rig.Process) (list []int64) {
	for line := range strings.Lines(p.Log()) {
		var said struct {
			Message string `json:"message"`
			Epoch   int64  `json:"epoch"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "leads" {
			list = append(list, said.Epoch)
		}
	}
	return list
}

// The primary of a Sentinel group is killed under twenty schedules each 200 ms. No slot is missed. With durability no slot
// runs twice. Without it, only slots of the last second before may run twice, because the replica may not have their writes.
func TestFailover_sentinelPromotesAReplica(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, head string }{
		{"durability of 1 replica", "durability: {replicas: 1}\n"}, {"no durability", ""},
	}[:testredis.Size(1, 2)] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := testredis.Sentinels(t)
			w := worldOn(t, g.URL())
			names, schedules := w.twenty()
			p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 40\n"+c.head, schedules...))
			p.Said("leads")
			w.Grow(600, "nothing arrives")
			old := g.Leading(t)
			killed := time.Now()
			g.Primary.Kill()
			testredis.Eventually(t, 40*time.Second, func() bool { return g.Leading(t) != old }, "nobody is promoted")
			promoted := time.Now()
			w.Grow(800, "the beat does not go on")
			ended := time.Now()
			p.Stop()

			repeats := w.wantRepeatsWithin(names, killed.Add(-time.Second), promoted)
			if c.head != "" && repeats > 0 {
				t.Errorf("%d slots ran twice, though what was answered was on a replica", repeats)
			}
			w.WantAuditAgrees(names...)
			w.failoverRow("Sentinel, the primary killed, "+c.name, names, ended,
				fmt.Sprintf("promoted after %s", promoted.Sub(killed).Round(time.Millisecond)))
		})
	}
}
