package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// skew is how far a moment that a test notes may be from the same moment in a process.
const skew = 400 * time.Millisecond

// span is when an operation was asked for, and when it was done: a container takes time to die.
type span struct{ asked, done time.Time }

// during returns the time that do takes.
func during(do func()) span {
	asked := time.Now()
	do()
	return span{asked, time.Now()}
}

// wantOneLoss fails unless exactly one loss was reported that covers the time between two events, give or take a heartbeat.
func (w *world) wantOneLoss(from, to span, heartbeat time.Duration) loss {
	w.Helper()
	list := w.losses()
	if len(list) != 1 {
		w.Fatalf("%d losses were reported, want one: %v", len(list), list)
	}
	l := list[0]
	if l.kept.Before(from.asked.Add(-heartbeat-skew)) || l.kept.After(from.done.Add(skew)) {
		w.Errorf("what was kept is said to end at %s, writes were lost from %s on", l.kept.Format("05.000"), from.done.Format("05.000"))
	}
	if l.known.Before(to.asked.Add(-heartbeat-skew)) || l.known.After(to.done.Add(skew)) {
		w.Errorf("what was known is said to end at %s, Redis died at %s", l.known.Format("05.000"), to.done.Format("05.000"))
	}
	return l
}

// wantFencesRise fails if a slot after a moment was claimed under a fence no larger than one before it.
func (w *world) wantFencesRise(lost, back time.Time) {
	w.Helper()
	var before, after int64
	for _, a := range w.Rec.Arrivals() {
		switch {
		case a.At.Before(lost):
			before = max(before, a.Fence)
		case a.Slot.After(back) && (after == 0 || a.Fence < after):
			after = a.Fence
		}
	}
	if before == 0 || after <= before {
		w.Errorf("fence %d after %d: it must rise, whatever Redis lost", after, before)
	}
}

// The replicas are cut off two seconds before the primary is killed, so all writes of that time are lost. The instance warned
// before, because it asks for durability. The loss is reported. The slots of the lost time run again, and no others; no slot
// is missed; fences and epochs rise.
//
// On a busy machine the sentinels may promote a second time by themselves. That would be two losses, so it is tried anew.
func TestFailover_whatNoReplicaHadIsReportedAndRunsAgain(t *testing.T) {
	testredis.OnlyInASoak(t)
	t.Parallel()
	for range 3 {
		if losesWhatNoReplicaHad(t) {
			return
		}
		t.Log("the sentinels promoted a second time")
	}
	t.Error("the sentinels promoted a second time, three times in a row")
}

// losesWhatNoReplicaHad returns false if the sentinels promoted a second time.
func losesWhatNoReplicaHad(t *testing.T) bool {
	t.Helper()
	g := testredis.Sentinels(t)
	w := worldOn(t, g.URL())
	names, schedules := w.twenty()
	config := w.Config("onbeat.yaml", "concurrency: 40\nlease: 5s\ndurability: {replicas: 1}\n", schedules...)
	one := w.Serve("one", config, "--release", "v1")
	one.Said("leads")
	w.Grow(400, "nothing arrives")
	old := g.Leading(t)
	parted := during(func() { g.Part(t) })
	one.Said("writes are on too few replicas: a failover may lose them")
	w.Grow(200, "the primary is suspect for good")
	time.Sleep(2 * time.Second) // the loss itself, not a wait for anything
	killed := during(g.Primary.Kill)
	g.Join(t)
	testredis.Eventually(t, 40*time.Second, func() bool { return g.Leading(t) != old }, "nobody is promoted")
	promoted := g.Leading(t)
	one.Said("redis lost its last writes")
	back := time.Now()
	w.Grow(800, "the beat does not go on")
	two := w.Serve("two", config, "--release", "v2")
	two.Said("leads")
	w.Grow(200, "the beat does not go on with the next release")
	ended := time.Now()
	one.Stop()
	two.Stop()

	if g.Leading(t) != promoted {
		return false
	}
	l := w.wantOneLoss(parted, killed, time.Second)
	repeats := w.wantRepeatsWithin(names, l.kept.Add(-skew), killed.done.Add(skew))
	if repeats == 0 {
		t.Error("nothing ran twice: nothing was lost, and this shows nothing")
	}
	w.wantFencesRise(killed.asked, back)
	if a, b := epochs(one), epochs(two); len(a) == 0 || len(b) == 0 || b[0] <= a[len(a)-1] {
		t.Errorf("epochs %v, then %v: they must rise", a, b)
	}
	w.WantAuditAgrees(names...)
	w.failoverRow("Sentinel, the primary killed seconds after its replicas were cut off", names, ended, lostText(l))
	return true
}

// lostText describes a reported loss.
func lostText(l loss) string {
	return fmt.Sprintf("what ran twice did so in the %s whose writes Redis lost and onbeat reported", l.known.Sub(l.kept).Round(time.Millisecond))
}

// The machine of a Redis crashes, and all data that is not on disk is lost. With appendfsync always no answered write is
// lost. With everysec the last second is lost: the slots of that second run again, and onbeat reports that.
func TestFailover_aCrashLosesWhatIsNotOnDisk(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"everysec", "always"}[:testredis.Size(1, 2)] {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			d := testredis.OnDisk(t, fsync)
			w := worldOn(t, d.URL())
			names, schedules := w.twenty()
			p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 40\nlease: 2s\n", schedules...))
			p.Said("leads")
			w.Grow(400, "nothing arrives")
			var kept int64
			lost := during(func() { kept = d.Written() })
			die := d.Kill // all answered writes are on disk
			if fsync == "everysec" {
				time.Sleep(time.Second) // the writes of this time may be lost with everysec
				die = func() { d.Crash(kept) }
			}
			killed := during(die)
			d.Restart()
			back := time.Now()
			w.Grow(800, "the beat does not go on")
			ended := time.Now()
			p.Stop()

			said := "nothing that was answered was lost"
			if fsync == "always" {
				if repeats := w.wantRepeatsWithin(names, killed.asked, killed.asked); repeats > 0 || len(w.losses()) > 0 {
					t.Errorf("%d slots ran twice, losses %v: want none", repeats, w.losses())
				}
			} else {
				l := w.wantOneLoss(lost, killed, 400*time.Millisecond)
				repeats := w.wantRepeatsWithin(names, l.kept.Add(-skew), killed.done.Add(skew))
				if repeats == 0 {
					t.Error("nothing ran twice: nothing was lost, and this shows nothing")
				}
				said = lostText(l)
			}
			w.wantFencesRise(killed.asked, back)
			w.WantAuditAgrees(names...)
			w.failoverRow("the machine of Redis crashes, appendfsync "+fsync, names, ended, said)
		})
	}
}

// A Redis without a file is killed and comes back empty. The instance that led makes again the schedules that it knows, both
// declared and applied ones. No slot leaves its grid, none is missed, and none runs twice, except one that was being claimed.
func TestFailover_aRedisThatComesBackEmptyGetsItsSchedulesBack(t *testing.T) {
	t.Parallel()
	d := testredis.Private(t)
	w := worldOn(t, d.URL())
	names, schedules := w.twenty()
	p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 40\n", schedules...))
	p.Said("leads")
	hand := w.File("hand.yaml", "schedules:\n"+w.Beat("hand", beatEvery, "missed: all"))
	w.Must("schedules", "apply", hand)
	names = append(names, "hand")
	testredis.Eventually(t, 20*time.Second, func() bool { return len(w.Of("hand")) > 10 }, "what was made by hand does not arrive")
	killed := during(d.Kill)
	d.Restart()
	restarted := time.Now()
	p.Said("restored the schedules that redis lost")
	back := time.Now()
	w.Grow(800, "the beat does not go on")
	ended := time.Now()
	p.Stop()

	list := w.losses()
	if len(list) != 1 || list[0].kept.UnixMilli() != 0 || list[0].known.Before(killed.asked.Add(-time.Second-skew)) || list[0].known.After(killed.done.Add(skew)) {
		t.Fatalf("losses %v: want one, of all, known up to a heartbeat before %v", list, killed.done)
	}
	w.wantRepeatsWithin(names, killed.asked.Add(-skew), killed.done.Add(skew))
	w.wantFencesRise(killed.asked, back)
	if e := epochs(p); len(e) != 2 || e[1] <= e[0] {
		t.Errorf("epochs %v: want two, rising", e)
	}
	w.WantAuditAgreesSince(restarted, names...)
	if events := w.events("schedule restored"); len(events) != len(names) {
		t.Errorf("want an event for each schedule that was restored: %v", events)
	}
	w.failoverRow("Redis comes back empty, every slot to be caught up", names, ended)
}
