package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/trial"
)

// Ten rollouts of one replica, by the program of ONBEAT_BEFORE and by that of this tree. The two take turns, so that both
// have the same machine. It measures, and judges nothing but that no slot is lost: few milliseconds differ.
func TestRollout_beforeAndNow(t *testing.T) {
	if os.Getenv("ONBEAT_BEFORE") == "" {
		t.Skip("ONBEAT_BEFORE names no commit to compare this tree with")
	}
	w := &world{&rig.World{T: t}}
	programs := w.Programs()
	taken := make([]turns, len(programs))
	for n := range rig.Size(2, 10) {
		for i, p := range programs {
			t.Run(fmt.Sprintf("turn %d %s", n+1, p), func(t *testing.T) { taken[i].add(newFleet(t, ""), p, rig.Size(2, 10)) })
		}
	}
	for i, p := range programs {
		taken[i].row(w, p)
	}
}

// turns is what the rollouts of one program showed.
type turns struct {
	rig.Figures
	arrivals []trial.Arrival
	middles  []time.Duration // of the lags, one for each turn
	first    []time.Duration // for each rollout, the largest lag within an interval of the new release's first slot
	between  []time.Duration // the lags of the other slots
}

// add takes one turn.
func (m *turns) add(f *fleet, p rig.Program, rollouts int) {
	f.Helper()
	f.path = p.Path
	live := f.release("v1").up(1)
	f.goesOn(20)
	for n := range rollouts {
		live = f.release(fmt.Sprintf("v%d", n+2)).rollout(live)
		f.goesOn(20)
	}
	f.ends(live)
	got := f.Judge(fleetEvery, f.ended.Add(-2*fleetEvery), f.beats...)
	f.WantWhole("the beats", got)
	m.Figures.Add(got)
	m.middles = append(m.middles, got.P50)
	m.sort(f.Rec.Arrivals())
}

// sort tells slots around a handover from the others.
func (m *turns) sort(list []trial.Arrival) {
	m.arrivals = append(m.arrivals, list...)
	begun := map[string]time.Time{}
	for _, a := range list {
		if at, there := begun[a.Release]; !there || a.Slot.Before(at) {
			begun[a.Release] = a.Slot
		}
	}
	delete(begun, "v1") // it took over from nobody
	worst := map[string]time.Duration{}
	for _, a := range list {
		between := true
		for release, at := range begun {
			if a.Slot.Sub(at).Abs() <= fleetEvery {
				worst[release], between = max(worst[release], a.At.Sub(a.Slot)), false
			}
		}
		if between {
			m.between = append(m.between, a.At.Sub(a.Slot))
		}
	}
	m.first = slices.AppendSeq(m.first, maps.Values(worst))
}

// row reports the turns of one program.
func (m *turns) row(w *world, p rig.Program) {
	lags := rig.Lags(m.arrivals)
	m.P50, m.P99 = rig.Quantile(lags, .5), rig.Quantile(lags, .99)
	slices.Sort(m.first)
	slices.Sort(m.between)
	slices.Sort(m.middles)
	name := p.Name
	if name == "" {
		name = "this program"
	}
	w.Row(fmt.Sprintf("%d rollouts, one replica each, programs in turns: %s", len(m.first), name), m.Figures,
		"lag around the handovers "+quantiles(m.first), "between them "+quantiles(m.between),
		fmt.Sprintf("lag p50 of the turns %.1f to %.1f ms", m.middles[0].Seconds()*1000, m.middles[len(m.middles)-1].Seconds()*1000))
}
