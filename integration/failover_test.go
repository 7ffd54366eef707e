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

	"github.com/onbeat/onbeat/testredis"
)

// twenty are the schedules of a failover. All slots of a time with nobody are to be run, so that none may be missing.
func (w *world) twenty() (names, schedules []string) {
	for i := range 20 {
		names = append(names, fmt.Sprintf("beat-%02d", i))
		schedules = append(schedules, w.beat(names[i], beatEvery, "missed: all"))
	}
	return names, schedules
}

// grows waits for more arrivals.
func (w *world) grows(n int, what string) {
	w.Helper()
	seen := w.rec.count()
	testredis.Eventually(w, 40*time.Second, func() bool { return w.rec.count() >= seen+n }, "%s", what)
}

// wantRepeatsWithin fails unless every slot of each schedule arrived, on one grid, and those that did more than once
// first did so between two moments. It returns how many did.
func (w *world) wantRepeatsWithin(names []string, from, to time.Time) (repeats int) {
	w.Helper()
	for _, name := range names {
		slots := bySlot(w.T, w.rec.of(name))
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
			if first := again[0].at; first.Before(from) || first.After(to) {
				w.Errorf("%s: slot %d arrived %d times, first at %s, not between %s and %s: %s", name, ms, len(again),
					first.Format("05.000"), from.Format("05.000"), to.Format("05.000"), describe(again))
			}
		}
	}
	return repeats
}

// loss is a time whose writes Redis lost, as an instance reported it.
type loss struct{ kept, known time.Time }

func (w *world) losses() (list []loss) {
	w.Helper()
	var events []struct {
		Event  string            `json:"event"`
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal([]byte(w.must("events", "--json", "--limit", "1000")), &events); err != nil {
		w.Fatal(err)
	}
	moment := func(text string) time.Time {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		return time.UnixMilli(ms)
	}
	for _, e := range events {
		if e.Event == "lost writes" {
			list = append(list, loss{moment(e.Fields["kept"]), moment(e.Fields["known"])})
		}
	}
	return list
}

// epochs are those of the terms in which a process led.
func (p *process) epochs() (list []int64) {
	for line := range strings.Lines(p.log.String()) {
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

// lag says how late the slots were that came before a moment.
func (w *world) lag(before time.Time) string {
	l := lags(slices.DeleteFunc(w.rec.all(), func(a arrival) bool { return a.at.After(before) }))
	return fmt.Sprintf("lag p50 %s, p99 %s", quantile(l, .5), quantile(l, .99))
}

// The primary of a Sentinel group is killed under twenty schedules each 200 ms. No slot is missed. With durability none
// runs twice; without, only one that ran in the last second before, of which the replica may not have heard.
func TestFailover_sentinelPromotesAReplica(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, head string }{
		{"with durability", "durability: {replicas: 1}\n"}, {"without", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := testredis.Sentinels(t)
			w := worldOn(t, g.URL())
			names, schedules := w.twenty()
			p := w.serve("one", w.config("onbeat.yaml", "concurrency: 40\n"+c.head, schedules...))
			p.said("leads")
			w.grows(600, "nothing arrives")
			old := g.Leading(t)
			killed := time.Now()
			g.Primary.Kill()
			testredis.Eventually(t, 40*time.Second, func() bool { return g.Leading(t) != old }, "nobody is promoted")
			promoted := time.Now()
			w.grows(800, "the beat does not go on")
			p.stop()

			repeats := w.wantRepeatsWithin(names, killed.Add(-time.Second), promoted)
			if c.head != "" && repeats > 0 {
				t.Errorf("%d slots ran twice, though what was answered was on a replica", repeats)
			}
			t.Logf("promoted after %s, %d of %d arrivals are repeats; before: %s", promoted.Sub(killed).Round(time.Millisecond),
				repeats, w.rec.count(), w.lag(killed))
			w.wantAuditAgrees(names...)
		})
	}
}
