package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/testredis"
)

const beatEvery = 200 * time.Millisecond

// fifty are the schedules of the two-instance run.
func (w *world) fifty() []string {
	var list []string
	for i := range 50 {
		list = append(list, w.Beat(fmt.Sprintf("beat-%02d", i), beatEvery))
	}
	return list
}

// Two processes, fifty schedules each 200 ms: every slot once, none early, and the newest does all the work.
func TestPromise5_theNewestOfTwoProcessesDoesAllTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.Config("onbeat.yaml", "concurrency: 50\n", w.fifty()...)
	old := w.Serve("v1", config, "--release", "v1")
	testredis.Eventually(t, 20*time.Second, func() bool { return w.Rec.Count() > 500 }, "v1 delivers nothing")

	next := w.Serve("v2", config, "--release", "v2")
	next.Said("leads")
	ready := time.Now() // the instance became ready just before
	seen := w.Rec.Count()
	testredis.Eventually(t, 20*time.Second, func() bool { return w.Rec.Count() > seen+750 }, "v2 delivers nothing")
	old.Stop()
	seen = w.Rec.Count()
	testredis.Eventually(t, 20*time.Second, func() bool { return w.Rec.Count() > seen+500 }, "v2 stopped with v1")
	next.Stop()

	all := w.Rec.Arrivals()
	for _, a := range all {
		if a.Release == "v1" && a.Slot.After(ready.Add(beatEvery)) {
			t.Errorf("v1 ran %s, %s after v2 led", a.ID, a.Slot.Sub(ready))
		}
	}
	for i := range 50 {
		name := fmt.Sprintf("beat-%02d", i)
		w.WantEverySlot(name, beatEvery, false)
	}
	l := rig.Lags(all)
	t.Logf("%d slots, lag from slot to arrival: p50 %s, p99 %s, max %s", len(all), rig.Quantile(l, .5), rig.Quantile(l, .99), l[len(l)-1])
	w.WantAuditClean()
}

// One leader is killed, one is frozen past its lease, and one is stopped cleanly, each with another instance there to take
// over. Every slot runs, on the grid. None runs twice, except as a further attempt of a lost run.
func TestPromise2_noSlotIsLostToCrashFreezeAndStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.Config("onbeat.yaml", "concurrency: 20\nlease: 1s\n", w.Beat("a", beatEvery), w.Beat("b", beatEvery), w.Beat("c", time.Second))
	spare := w.Serve("spare", config, "--release", "v1")
	spare.Said("leads")
	killed := w.Serve("killed", config, "--release", "v2")
	killed.Said("leads")
	w.Grow(20, "nothing arrives from the second")
	killed.Kill()
	w.Grow(20, "nobody took over from the killed one")

	frozen := w.Serve("frozen", config, "--release", "v3")
	frozen.Said("leads")
	w.Grow(20, "nothing arrives from the third")
	frozen.Send(trial.SigStop)
	w.Grow(20, "nobody took over from the frozen one")
	frozen.Send(trial.SigCont)
	frozen.Said("lease lost: this instance's claims are void")
	w.Grow(20, "the beat stopped after the frozen one woke")
	frozen.Stop()
	w.Grow(20, "nobody took over from the one that stopped")
	spare.Stop()

	w.WantEverySlot("a", beatEvery, true)
	w.WantEverySlot("b", beatEvery, true)
	w.WantEverySlot("c", time.Second, true)
	w.WantAuditClean()
}

// All instances stop for 3.3 s. That is shorter than the horizon, so the slots of that time already lie in the due sets. The
// schedule's policy applies to them all the same.
func TestPromise7_theGridAndThePolicyHoldWhenAllInstancesStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.Config("onbeat.yaml", "concurrency: 50\n",
		w.Beat("once", beatEvery), w.Beat("all", beatEvery, "missed: all"), w.Beat("skip", beatEvery, "missed: skip"))
	first := w.Serve("first", config)
	testredis.Eventually(t, 20*time.Second, func() bool { return w.Rec.Count() > 30 }, "nothing arrives")
	first.Stop()
	stopped := time.Now()
	time.Sleep(3300 * time.Millisecond) // the outage itself, not a wait for anything
	second := w.Serve("second", config)
	second.Said("leads")
	back := time.Now()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return len(w.Of("once")) > 0 && w.Of("once")[len(w.Of("once"))-1].Slot.After(back.Add(time.Second))
	}, "the beat does not go on")
	second.Stop()

	w.WantEverySlot("all", beatEvery, false)
	during := func(name string) (n int) {
		for _, a := range w.Of(name) {
			if a.Slot.After(stopped) && a.Slot.Before(back.Add(-beatEvery)) {
				n++
			}
		}
		return n
	}
	if n := during("all"); n < 14 {
		t.Errorf("missed: all ran %d slots of the outage, want 14 or more", n)
	}
	if n := during("once"); n > 1 {
		t.Errorf("missed: once ran %d slots of the outage, want the latest at most", n)
	}
	if n := during("skip"); n != 0 {
		t.Errorf("missed: skip ran %d slots of the outage", n)
	}
	for _, name := range []string{"once", "skip"} {
		list := w.Of(name)
		for ms, again := range rig.BySlot(t, list) {
			if len(again) != 1 {
				t.Errorf("%s: slot %d arrived %d times", name, ms, len(again))
			}
			if off := (ms - list[0].Slot.UnixMilli()) % beatEvery.Milliseconds(); off != 0 {
				t.Errorf("%s: slot %d is %d ms off the grid", name, ms, off)
			}
		}
	}
	w.WantAuditAgrees("once", "all", "skip")
}
