package integration

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

const beatEvery = 200 * time.Millisecond

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
