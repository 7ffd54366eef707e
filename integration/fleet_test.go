package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// fleetEvery is the interval of a fleet's schedules. Two of them are the longest gap that a rollout may leave.
const fleetEvery = 100 * time.Millisecond

// fleet is a world with twenty schedules, each every 100 ms, and releases that follow one another.
//
// It plays beside other tests, except in a soak, which measures milliseconds.
type fleet struct {
	*world
	head  string    // of every config file: how instances lead and consume
	beats []string  // the schedules' names
	ended time.Time // when the last release was asked to stop
	still *standstill
}

func newFleet(t *testing.T, head string) *fleet {
	t.Helper()
	beside(t)
	f := &fleet{world: newWorld(t), head: "concurrency: 50\n" + head, still: watchStandstill(t)}
	for i := range 20 {
		f.beats = append(f.beats, fmt.Sprintf("beat-%02d", i))
	}
	return f
}

// release is a number of replicas of one version.
type release struct {
	*fleet
	version, config string
	path            string // the program
	args            []string
	replicas        []*rig.Process
}

// release prepares a version that declares the twenty schedules and the given ones.
func (f *fleet) release(version string, more ...string) *release {
	f.Helper()
	var list []string
	for _, name := range f.beats {
		list = append(list, f.Beat(name, fleetEvery))
	}
	return f.only(version, append(list, more...)...)
}

// only prepares a version that declares only the given schedules.
func (f *fleet) only(version string, schedules ...string) *release {
	f.Helper()
	return &release{fleet: f, version: version, path: f.Binary(), config: f.Config(version+".yaml", f.head, schedules...)}
}

// start starts one more replica.
func (r *release) start() *rig.Process {
	r.Helper()
	name := fmt.Sprintf("%s replica %d", r.version, len(r.replicas)+1)
	p := r.ServeAs(r.path, nil, name, r.config, append([]string{"--release", r.version}, r.args...)...)
	r.replicas = append(r.replicas, p)
	return p
}

// up starts n replicas, each when the one before is ready.
func (r *release) up(n int) *release {
	r.Helper()
	for range n {
		r.start().Said("ready")
	}
	return r
}

// down sends SIGTERM to the replicas that are left, all at once, and waits for clean exits.
func (r *release) down() {
	r.Helper()
	rig.Stop(r.replicas...)
}

// rollout replaces the old release replica by replica: each new one is up before an old one gets SIGTERM. Both happen
// at random offsets from the slots.
func (r *release) rollout(old *release) *release {
	r.Helper()
	for _, p := range old.replicas {
		if p.HasExited() {
			continue
		}
		anyOffset()
		r.up(1)
		anyOffset()
		p.Stop()
	}
	return r
}

// anyOffset waits a random part of an interval, so that the next operation comes anywhere between two slots.
func anyOffset() { time.Sleep(rand.N(fleetEvery)) }

// goesOn waits until the schedules have beaten for a number of intervals from now on. By then late slots are caught up.
func (f *fleet) goesOn(intervals int) {
	f.Helper()
	begin := time.Now()
	testredis.Eventually(f, 30*time.Second, func() bool {
		beats := 0
		for _, a := range f.Rec.Arrivals() {
			if a.Slot.After(begin) {
				beats++
			}
		}
		return beats >= intervals*len(f.beats)
	}, "the beat stopped")
}

// ends stops the last release, once it has caught up with all that was due by now: a task that an instance has not claimed
// when it stops waits for the next instance.
func (f *fleet) ends(last *release) {
	f.Helper()
	f.ended = time.Now()
	f.goesOn(1)
	last.down()
}

// reigns returns the releases in the order in which they claimed tasks. "v1 v2" means that v1 claimed nothing after the first
// claim of v2; v1 may still have run tasks that it held before. The order comes from fences, which rise with every claim, so
// it needs no clock.
func (f *fleet) reigns() string {
	list := f.Rec.Arrivals()
	slices.SortStableFunc(list, func(a, b trial.Arrival) int { return int(a.Fence - b.Fence) })
	var order []string
	for _, a := range list {
		order = append(order, a.Release)
	}
	return strings.Join(slices.Compact(order), " ")
}

func (f *fleet) wantReigns(want ...string) {
	f.Helper()
	if got := f.reigns(); got != strings.Join(want, " ") && !f.stalled() {
		f.Errorf("the releases claimed in the order %s, want %s", got, strings.Join(want, " "))
	}
}

// wantTerms fails unless these releases led, one term each, before the last one was taken down.
func (f *fleet) wantTerms(want ...string) {
	f.Helper()
	if got := f.led(); !slices.Equal(got, want) && !f.stalled() {
		f.Errorf("terms of %v, want %v", got, want)
	}
}

// stalled reports whether the machine stood still so long that another replica led for a leader that lives. Then the order of terms is
// another, and rightly so. A soak takes no excuse.
func (f *fleet) stalled() bool {
	f.Helper()
	wrong := f.events("suspected wrongly")
	for _, e := range wrong {
		f.Logf("the machine stood still: the leader was suspected wrongly: %v", e.Fields)
	}
	return len(wrong) > 0 && !testredis.Soak()
}

// led returns the releases of all terms that began before the last release was stopped. The replicas of that release end all
// at once, and hand the lead to each other meanwhile.
func (f *fleet) led() (releases []string) {
	f.Helper()
	for _, e := range f.events("leader") {
		if e.At.Before(f.ended.Truncate(time.Millisecond)) { // events have milliseconds
			releases = append(releases, e.Fields["release"])
		}
	}
	return releases
}
