package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// skew is how far a moment that a test notes may be from the one that a process does.
const skew = 250 * time.Millisecond

// wantOneLoss fails unless one loss was reported that covers the time between two moments, but for a heartbeat.
func (w *world) wantOneLoss(from, to time.Time, heartbeat time.Duration) loss {
	w.Helper()
	list := w.losses()
	if len(list) != 1 {
		w.Fatalf("%d losses were reported, want one: %v", len(list), list)
	}
	l := list[0]
	if l.kept.Before(from.Add(-heartbeat-skew)) || l.kept.After(from.Add(skew)) {
		w.Errorf("what was kept is said to end at %s, writes were lost from %s on", l.kept.Format("05.000"), from.Format("05.000"))
	}
	if l.known.Before(to.Add(-heartbeat-skew)) || l.known.After(to.Add(skew)) {
		w.Errorf("what was known is said to end at %s, Redis died at %s", l.known.Format("05.000"), to.Format("05.000"))
	}
	return l
}

// wantFencesRise fails if a slot after a moment was claimed under a fence no larger than one before it.
func (w *world) wantFencesRise(lost, back time.Time) {
	w.Helper()
	var before, after int64
	for _, a := range w.rec.all() {
		switch {
		case a.at.Before(lost):
			before = max(before, a.fence)
		case a.slot.After(back) && (after == 0 || a.fence < after):
			after = a.fence
		}
	}
	if before == 0 || after <= before {
		w.Errorf("fence %d after %d: it must rise, whatever Redis lost", after, before)
	}
}

// The replicas were cut off two seconds before the primary is killed, so all that was written since is lost. An
// instance that asks for durability has said so before; the loss is reported; what ran in it runs again, and nothing
// else; nothing is missed; fences and epochs rise.
func TestFailover_whatNoReplicaHadIsReportedAndRunsAgain(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinels(t)
	w := worldOn(t, g.URL())
	names, schedules := w.twenty()
	config := w.config("onbeat.yaml", "concurrency: 40\nlease: 5s\ndurability: {replicas: 1}\n", schedules...)
	one := w.serve("one", config, "--release", "v1")
	one.said("leads")
	w.grows(400, "nothing arrives")
	old := g.Leading(t)
	parted := time.Now()
	g.Part(t)
	one.said("writes are on too few replicas: a failover may lose them")
	time.Sleep(2*time.Second - time.Since(parted)) // the loss itself, not a wait for anything
	killed := time.Now()
	g.Primary.Kill()
	g.Join(t)
	testredis.Eventually(t, 40*time.Second, func() bool { return g.Leading(t) != old }, "nobody is promoted")
	one.said("redis lost its last writes")
	back := time.Now()
	w.grows(800, "the beat does not go on")
	two := w.serve("two", config, "--release", "v2")
	two.said("leads")
	w.grows(200, "the beat does not go on with the next release")
	one.stop()
	two.stop()

	l := w.wantOneLoss(parted, killed, time.Second)
	repeats := w.wantRepeatsWithin(names, l.kept.Add(-skew), killed.Add(skew))
	if repeats == 0 {
		t.Error("nothing ran twice: nothing was lost, and this shows nothing")
	}
	t.Logf("%d slots ran twice; %s were lost, and %s reported", repeats, killed.Sub(parted), l.known.Sub(l.kept))
	w.wantFencesRise(killed, back)
	if a, b := one.epochs(), two.epochs(); len(a) == 0 || len(b) == 0 || b[0] <= a[len(a)-1] {
		t.Errorf("epochs %v, then %v: they must rise", a, b)
	}
	w.wantAuditAgrees(names...)
}

// The machine of a Redis crashes, which takes with it what is not on disk. With appendfsync always that is nothing that
// was answered. With everysec it is the last second: what ran in it runs again, and that is reported.
func TestFailover_aCrashLosesWhatIsNotOnDisk(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			d := testredis.OnDisk(t, fsync)
			w := worldOn(t, d.URL())
			names, schedules := w.twenty()
			p := w.serve("one", w.config("onbeat.yaml", "concurrency: 40\nlease: 2s\n", schedules...))
			p.said("leads")
			w.grows(400, "nothing arrives")
			lost := time.Now()
			kept := d.Written()
			if fsync == "everysec" {
				time.Sleep(time.Second) // what everysec may lose
			}
			killed := time.Now()
			if fsync == "everysec" {
				d.Crash(kept)
			} else {
				d.Kill() // all that was answered is on disk
			}
			d.Restart()
			back := time.Now()
			w.grows(800, "the beat does not go on")
			p.stop()

			if fsync == "always" {
				if repeats := w.wantRepeatsWithin(names, killed, killed); repeats > 0 || len(w.losses()) > 0 {
					t.Errorf("%d slots ran twice, losses %v: want none", repeats, w.losses())
				}
			} else {
				l := w.wantOneLoss(lost, killed, 400*time.Millisecond)
				repeats := w.wantRepeatsWithin(names, l.kept.Add(-skew), killed.Add(skew))
				if repeats == 0 {
					t.Error("nothing ran twice: nothing was lost, and this shows nothing")
				}
				t.Logf("%d slots ran twice; %s were lost, and %s reported", repeats, killed.Sub(lost), l.known.Sub(l.kept))
			}
			w.wantFencesRise(killed, back)
			w.wantAuditAgrees(names...)
		})
	}
}

// A Redis without a file is killed and comes back empty. The instance that led makes the schedules again that it knows,
// by hand and declared: no slot leaves its grid, none is missed, and none runs twice but for a claim under way.
func TestFailover_aRedisThatComesBackEmptyGetsItsSchedulesBack(t *testing.T) {
	t.Parallel()
	d := testredis.Private(t)
	w := worldOn(t, d.URL())
	names, schedules := w.twenty()
	p := w.serve("one", w.config("onbeat.yaml", "concurrency: 40\n", schedules...))
	p.said("leads")
	hand := filepath.Join(w.dir, "hand.yaml")
	if err := os.WriteFile(hand, []byte("schedules:\n"+w.beat("hand", beatEvery, "missed: all")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("schedules", "apply", hand)
	names = append(names, "hand")
	testredis.Eventually(t, 20*time.Second, func() bool { return len(w.rec.of("hand")) > 10 }, "what was made by hand does not arrive")
	killed := time.Now()
	d.Kill()
	d.Restart()
	restarted := time.Now()
	p.said("restored the schedules that redis lost")
	back := time.Now()
	w.grows(800, "the beat does not go on")
	p.stop()

	list := w.losses()
	if len(list) != 1 || list[0].kept.UnixMilli() != 0 || list[0].known.Before(killed.Add(-time.Second-skew)) || list[0].known.After(killed.Add(skew)) {
		t.Fatalf("losses %v: want one, of all, known up to a heartbeat before %v", list, killed)
	}
	repeats := w.wantRepeatsWithin(names, killed.Add(-skew), killed.Add(skew))
	t.Logf("%d slots ran twice", repeats)
	w.wantFencesRise(killed, back)
	if e := p.epochs(); len(e) != 2 || e[1] <= e[0] {
		t.Errorf("epochs %v: want two, rising", e)
	}
	w.wantAuditClean()
	_, lines := w.audit()
	for _, name := range names {
		slots := map[string]bool{}
		for _, a := range w.rec.of(name) {
			if a.at.After(restarted) {
				slots[a.id] = true
			}
		}
		if got := lines[name].OnTime + lines[name].Late; got != len(slots) {
			t.Errorf("audit says that %d slots of %s ran, the recorder saw %d since the loss: %+v", got, name, len(slots), lines[name])
		}
	}
	if events := w.must("events", "--limit", "1000"); strings.Count(events, "schedule restored") != len(names) {
		t.Errorf("want an event for each schedule that was restored:\n%s", events)
	}
}
