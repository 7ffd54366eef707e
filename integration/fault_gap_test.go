package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// The leader is killed, with the default lease. The beat goes on long before the lease is over: another instance suspects
// the dead one, and leads.
func TestFault_aKilledLeaderHoldsTheBeatUpForLessThanItsLease(t *testing.T) {
	beside(t)
	r := &gapTrial{what: "leader killed (lease 5s)", limit: 3 * time.Second, strike: func(b *band, _ int) { b.killed() }}
	r.run(t, "", 1, 6, testredis.Size(1, 100))
	if testredis.Soak() {
		r.what += ", consume: release"
		r.run(t, "consume: release\n", 1, 3, 30)
	}
}

// The leader is frozen, with the default lease, and woken within it or after it. The beat goes on before the lease is over:
// due work waits, and the leader is silent.
func TestFault_aFrozenLeaderHoldsTheBeatUpForLessThanItsLease(t *testing.T) {
	beside(t)
	r := &gapTrial{what: "leader frozen (lease 5s), woken within the lease or after it", limit: 4 * time.Second, strike: func(b *band, n int) {
		d := defaultLease + time.Second + rand.N(time.Second)
		if n%2 == 1 && testredis.Soak() {
			d = 3*time.Second + rand.N(time.Second)
		}
		b.frozen(d)
	}}
	r.run(t, "", 1, 6, testredis.Size(1, 50))
	if testredis.Soak() {
		r.what += ", consume: release"
		r.run(t, "consume: release\n", 1, 3, 15)
	}
}

// gapTrial takes the leader of several bands away, again and again, and measures the gaps in the beat.
type gapTrial struct {
	what   string
	limit  time.Duration // no gap may be longer, beyond the interval
	strike func(b *band, n int)
}

// run strikes a number of times: in one namespace for few, in several side by side in a soak.
func (r *gapTrial) run(t *testing.T, head string, few, many, times int) {
	t.Helper()
	n := testredis.Size(few, many)
	bands := make([]*band, n)
	var all sync.WaitGroup
	for j := range n {
		all.Go(func() { // subtests that run beside each other whatever -parallel says
			t.Run(fmt.Sprintf("namespace %d", j+1), func(t *testing.T) {
				b := newBand(t, 2+j%2, head) // pairs and triples
				for k := j; k < times; k += n {
					r.strike(b, k/n)
				}
				b.ends()
				bands[j] = b
			})
		})
	}
	all.Wait()
	r.report(t, slices.DeleteFunc(bands, func(b *band) bool { return b == nil }))
}

// report judges the bands, and adds a row for each schedule.
func (r *gapTrial) report(t *testing.T, bands []*band) {
	t.Helper()
	w := &world{&rig.World{T: t}}
	for _, name := range slices.Sorted(maps.Keys(bandBeats)) {
		every := bandBeats[name]
		got := &trial.Result{}
		var gaps, handovers []time.Duration
		held, right, wrong := 0, 0, 0
		for _, b := range bands {
			b.T = t // its own test is over
			got.Add(b.JudgeOne(name, b.Of(name), every, b.ended.Add(-2*every)))
			g, h := b.gaps(name)
			gaps, held = append(gaps, g...), held+h
			handovers = append(handovers, b.handovers()...)
			good, bad := b.suspicions()
			right, wrong = right+good, wrong+bad
		}
		slices.Sort(gaps)
		slices.Sort(handovers)
		w.WantWhole(name, got)
		if len(gaps) == 0 {
			t.Fatal("no leader was lost: this proves nothing")
		}
		if longest := gaps[len(gaps)-1]; longest > r.limit {
			t.Errorf("%s: the longest gap is %s longer than the interval, want at most %s", name, longest, r.limit)
		}
		w.Row(fmt.Sprintf("%s, each %s", r.what, every), got, fmt.Sprintf("%d times", len(gaps)),
			"gap beyond the interval "+quantiles(gaps), "another led after "+quantiles(handovers),
			fmt.Sprintf("%d suspected, %d wrongly", right+wrong, wrong), fmt.Sprintf("%d slots held by the lost", held))
	}
}

// quantiles says the middle, the 99th percentile and the largest of sorted times.
func quantiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "-"
	}
	ms := func(percent int) float64 {
		nearest := (len(sorted)*percent+99)/100 - 1 // so p99 of a hundred is the last but one
		return float64(sorted[nearest].Microseconds()) / 1000
	}
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, max %.1f ms", ms(50), ms(99), ms(100))
}
