package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// defaultLease is the lease of a config that names none.
const defaultLease = 5 * time.Second

// bandBeats are the schedules of a band.
var bandBeats = map[string]time.Duration{"quick": beatEvery, "slow": time.Second}

// band is one namespace with replicas of one release, whose leader is killed or frozen again and again. Several bands play
// side by side.
type band struct {
	*world
	config   string
	replicas []*rig.Process // those that live
	started  int
	began    map[string]time.Time // by instance: when it was first seen to lead
	blows    []blow
	ended    time.Time          // when the last instance was asked to stop
	events   map[string][]event // by kind, when it was over
}

// blow is one time that a leader was killed or frozen.
type blow struct {
	instance string
	at, back time.Time // the signal; SIGCONT, or zero
	until    time.Time // later arrivals have nothing to do with it
}

// newBand starts a namespace, and waits until it beats.
func newBand(t *testing.T, replicas int, head string) *band {
	t.Helper()
	b := &band{world: newWorld(t), began: map[string]time.Time{}, events: map[string][]event{}}
	var list []string
	for name, every := range bandBeats {
		list = append(list, b.Beat(name, every))
	}
	b.config = b.Config("onbeat.yaml", "concurrency: 20\n"+head, list...)
	for range replicas {
		b.start()
	}
	b.plays(time.Now())
	return b
}

// start starts one more replica, and waits until it is ready.
func (b *band) start() {
	b.Helper()
	b.started++
	p := b.Serve(fmt.Sprintf("replica %d", b.started), b.config, "--release", "v1")
	p.Said("ready")
	b.replicas = append(b.replicas, p)
}

// settled is how long an instance leads before it is lost: two heartbeats, so that the others know it.
const settled = 2 * defaultLease / 5

// leader waits for a leader that has led for a while, and for a random moment of its beat.
func (b *band) leader() (found *rig.Process) {
	b.Helper()
	rdb := testredis.Client(b.T)
	testredis.Eventually(b, 30*time.Second, func() bool {
		id := rdb.HGet(context.Background(), "onbeat:{"+b.NS+"}:leader", "id").Val()
		at := slices.IndexFunc(b.replicas, func(p *rig.Process) bool { return p.Instance() == id })
		if at < 0 {
			return false
		}
		if b.began[id].IsZero() {
			clear(b.began)
			b.began[id] = time.Now()
		}
		found = b.replicas[at]
		return time.Since(b.began[id]) >= settled
	}, "nobody leads for %s", settled)
	time.Sleep(rand.N(bandBeats["slow"])) // the fault's own moment, anywhere between two slots
	return found
}

// plays waits until every slot has arrived that was due within a beat of a moment. It gives up in silence, because the slots
// are judged at the end.
func (b *band) plays(since time.Time) {
	for name, every := range bandBeats {
		for end := time.Now().Add(4 * defaultLease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if b.whole(b.Of(name), every, since.Add(bandBeats["slow"])) {
				break
			}
		}
	}
}

// whole reports whether the slots of a schedule arrived, up to one that is due at a moment or later.
func (b *band) whole(list []trial.Arrival, every time.Duration, until time.Time) bool {
	there := map[int64]bool{}
	last := int64(0)
	for _, a := range list {
		there[a.Slot.UnixMilli()] = true
		last = max(last, a.Slot.UnixMilli())
	}
	if last < until.UnixMilli() {
		return false
	}
	for ms := last; ms > until.Add(-2*defaultLease).UnixMilli() && ms >= list[0].Slot.UnixMilli(); ms -= every.Milliseconds() {
		if !there[ms] {
			return false
		}
	}
	return true
}

// killed kills the leader, and replaces it when the beat goes on.
func (b *band) killed() {
	b.Helper()
	p := b.leader()
	l := blow{instance: p.Instance(), at: time.Now()}
	p.Kill()
	b.plays(l.at)
	l.until = time.Now()
	b.lost(p, l)
}

// frozen freezes the leader for a time, and replaces it by a new process when it has recovered: an instance that was suspected
// wrongly is trusted longer the next time, and each freeze here is to be a first one.
func (b *band) frozen(d time.Duration) {
	b.Helper()
	p := b.leader()
	l := blow{instance: p.Instance(), at: time.Now()}
	p.Send(trial.SigStop)
	time.Sleep(d) // the fault itself
	l.back = time.Now()
	p.Send(trial.SigCont)
	b.plays(l.back)
	l.until = time.Now()
	p.Stop()
	b.lost(p, l)
}

// lost notes a loss, and starts a process in place of the lost one.
func (b *band) lost(p *rig.Process, l blow) {
	b.Helper()
	b.blows = append(b.blows, l)
	b.replicas = slices.DeleteFunc(b.replicas, func(q *rig.Process) bool { return q == p })
	b.start()
}

// ends stops all replicas, once the slots of the last lost replica have run again: its lease has to be over for that.
func (b *band) ends() {
	b.Helper()
	if n := len(b.blows); n > 0 {
		time.Sleep(time.Until(b.blows[n-1].at.Add(defaultLease + time.Second)))
		b.plays(time.Now())
	}
	b.ended = time.Now()
	rig.Stop(b.replicas...)
	for _, kind := range []string{"leader", "suspected"} {
		b.events[kind] = b.world.events(kind)
	}
	b.WantAuditAgrees(slices.Collect(maps.Keys(bandBeats))...)
}

// gaps returns, for each loss, by how much the longest gap between two neighbouring slots of a schedule was longer than the
// interval. A slot that the lost instance held is not looked at: it is the instance's own until its lease ends.
func (b *band) gaps(name string) (list []time.Duration, held int) {
	first := map[int64]trial.Arrival{}
	for _, a := range b.Of(name) {
		if was, there := first[a.Slot.UnixMilli()]; !there || a.At.Before(was.At) {
			first[a.Slot.UnixMilli()] = a
		}
	}
	list = make([]time.Duration, len(b.blows))
	var before trial.Arrival
	for _, a := range inOrder(first) {
		if b.heldByLost(a) {
			held++
			continue
		}
		for i, l := range b.blows {
			if !before.At.IsZero() && a.At.After(l.at) && a.At.Before(l.until) {
				list[i] = max(list[i], a.At.Sub(before.At)-a.Slot.Sub(before.Slot))
			}
		}
		before = a
	}
	return list, held
}

func inOrder(slots map[int64]trial.Arrival) (list []trial.Arrival) {
	for _, a := range slots {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b trial.Arrival) int { return a.Slot.Compare(b.Slot) })
	return list
}

// heldByLost reports whether an instance had a slot when it was lost: the slot came as a further attempt, or when the instance
// woke.
func (b *band) heldByLost(a trial.Arrival) bool {
	return a.Attempt > 1 || slices.ContainsFunc(b.blows, func(l blow) bool {
		return a.Instance == l.instance && a.Slot.Before(l.at) && a.At.After(l.at)
	})
}

// handovers returns how long after each loss another instance led, by the clock of Redis. A frozen instance that nobody
// followed is left out.
func (b *band) handovers() (list []time.Duration) {
	for _, l := range b.blows {
		for _, e := range b.events["leader"] {
			if e.At.After(l.at) && e.At.Before(l.until) && e.Fields["instance"] != l.instance {
				list = append(list, e.At.Sub(l.at))
				break
			}
		}
	}
	return list
}

// suspicions counts the losses that were suspected before the lease was over, and how often an instance was suspected that
// was neither killed nor frozen at the time.
func (b *band) suspicions() (right, wrong int) {
	b.Helper()
	for _, e := range b.events["suspected"] {
		if slices.ContainsFunc(b.blows, func(l blow) bool {
			return e.Fields["instance"] == l.instance && e.At.After(l.at.Add(-time.Millisecond)) && (l.back.IsZero() || e.At.Before(l.back))
		}) {
			right++
		} else {
			b.Logf("suspected wrongly: %s %v", e.At.Format(time.StampMilli), e.Fields)
			wrong++
		}
	}
	return right, wrong
}
