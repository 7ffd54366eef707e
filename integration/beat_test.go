package integration

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

const beatEvery = 200 * time.Millisecond

// fifty are the schedules of the two-instance run.
func (w *world) fifty() []string {
	var list []string
	for i := range 50 {
		list = append(list, w.beat(fmt.Sprintf("beat-%02d", i), beatEvery))
	}
	return list
}

// Two processes, fifty schedules each 200 ms: every slot once, none early, and the newest does all the work.
func TestPromise5_theNewestOfTwoProcessesDoesAllTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("onbeat.yaml", "concurrency: 50\n", w.fifty()...)
	old := w.serve("v1", config, "--release", "v1")
	testredis.Eventually(t, 20*time.Second, func() bool { return w.rec.count() > 500 }, "v1 delivers nothing")

	next := w.serve("v2", config, "--release", "v2")
	next.said("leads")
	ready := time.Now() // it was ready a moment before
	seen := w.rec.count()
	testredis.Eventually(t, 20*time.Second, func() bool { return w.rec.count() > seen+750 }, "v2 delivers nothing")
	old.stop()
	seen = w.rec.count()
	testredis.Eventually(t, 20*time.Second, func() bool { return w.rec.count() > seen+500 }, "v2 stopped with v1")
	next.stop()

	all := w.rec.all()
	for _, a := range all {
		if a.release == "v1" && a.slot.After(ready.Add(beatEvery)) {
			t.Errorf("v1 ran %s, %s after v2 led", a.id, a.slot.Sub(ready))
		}
	}
	for i := range 50 {
		name := fmt.Sprintf("beat-%02d", i)
		wantEverySlot(t, name, w.rec.of(name), beatEvery, false)
	}
	l := lags(all)
	t.Logf("%d slots, lag from slot to arrival: p50 %s, p99 %s, max %s", len(all), quantile(l, .5), quantile(l, .99), l[len(l)-1])
	w.wantAuditClean()
}

// A leader that is killed, one that is frozen past its lease, and one that is stopped in order: with another there to
// take over, every slot is run, on the grid, and none twice but by a repeated attempt of a lost run.
func TestPromise2_noSlotIsLostToCrashFreezeAndStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("onbeat.yaml", "concurrency: 20\nlease: 1s\n", w.beat("a", beatEvery), w.beat("b", beatEvery), w.beat("c", time.Second))
	grow := func(n int, what string) {
		t.Helper()
		seen := w.rec.count()
		testredis.Eventually(t, 30*time.Second, func() bool { return w.rec.count() >= seen+n }, "%s", what)
	}
	spare := w.serve("spare", config, "--release", "v1")
	spare.said("leads")
	killed := w.serve("killed", config, "--release", "v2")
	killed.said("leads")
	grow(20, "nothing arrives from the second")
	killed.kill()
	grow(20, "nobody took over from the killed one")

	frozen := w.serve("frozen", config, "--release", "v3")
	frozen.said("leads")
	grow(20, "nothing arrives from the third")
	frozen.signal(syscall.SIGSTOP)
	grow(20, "nobody took over from the frozen one")
	frozen.signal(syscall.SIGCONT)
	frozen.said("lease lost: what was claimed is void")
	grow(20, "the beat stopped after the frozen one woke")
	frozen.stop()
	grow(20, "nobody took over from the one that stopped")
	spare.stop()

	wantEverySlot(t, "a", w.rec.of("a"), beatEvery, true)
	wantEverySlot(t, "b", w.rec.of("b"), beatEvery, true)
	wantEverySlot(t, "c", w.rec.of("c"), time.Second, true)
	w.wantAuditClean()
}

// All instances stop for 3.3 s, which is shorter than the horizon, so the slots of that time lie in the due sets: the
// schedule's policy holds for them all the same.
func TestPromise7_theGridAndThePolicyHoldWhenAllInstancesStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("onbeat.yaml", "concurrency: 50\n",
		w.beat("once", beatEvery), w.beat("all", beatEvery, "missed: all"), w.beat("skip", beatEvery, "missed: skip"))
	first := w.serve("first", config)
	testredis.Eventually(t, 20*time.Second, func() bool { return w.rec.count() > 30 }, "nothing arrives")
	first.stop()
	stopped := time.Now()
	time.Sleep(3300 * time.Millisecond) // the outage itself, not a wait for anything
	second := w.serve("second", config)
	second.said("leads")
	back := time.Now()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return len(w.rec.of("once")) > 0 && w.rec.of("once")[len(w.rec.of("once"))-1].slot.After(back.Add(time.Second))
	}, "the beat does not go on")
	second.stop()

	wantEverySlot(t, "all", w.rec.of("all"), beatEvery, false)
	during := func(name string) (n int) {
		for _, a := range w.rec.of(name) {
			if a.slot.After(stopped) && a.slot.Before(back.Add(-beatEvery)) {
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
		list := w.rec.of(name)
		for ms, again := range bySlot(t, list) {
			if len(again) != 1 {
				t.Errorf("%s: slot %d arrived %d times", name, ms, len(again))
			}
			if off := (ms - list[0].slot.UnixMilli()) % beatEvery.Milliseconds(); off != 0 {
				t.Errorf("%s: slot %d is %d ms off the grid", name, ms, off)
			}
		}
	}
	w.wantAuditAgrees("once", "all", "skip")
}
