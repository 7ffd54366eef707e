package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A new release that crashes in a loop, each time before min_ready has gone by, never leads and never works.
func TestLead_aReleaseThatCrashLoopsNeverLeadsWithMinReady(t *testing.T) {
	f := newFleet(t, "consume: release\nlease: 2s\nmin_ready: 8s\n")
	old := f.release("v1").up(1)
	f.goesOn(5)
	next := f.release("v2")
	for range testredis.Size(2, 20) {
		p := next.start()
		p.Said("registered")
		f.goesOn(10) // its life, shorter than min_ready
		p.Kill()
	}
	f.goesOn(5)
	f.ends(old)

	f.wantReigns("v1")
	f.wantTerms("v1")
	f.wantSteady("new release crash-loops, min_ready", 2*fleetEvery)
}

// Without min_ready a release that crashes in a loop leads each time. Soon after each crash, and within the lease whatever
// happens, the old one leads again, and slots that were due meanwhile run late: none is lost.
//
// The limit leaves some time for a busy machine of two cores.
func TestLead_theOldReleaseLeadsAgainWithinALeaseOfACrash(t *testing.T) {
	testredis.OnlyInASoak(t)
	const lease = 2 * time.Second
	f := newFleet(t, fmt.Sprintf("consume: release\nlease: %s\n", lease))
	old := f.release("v1").up(1)
	f.goesOn(5)
	next := f.release("v2")
	want := []string{"v1"}
	var worst time.Duration
	for range 20 {
		p := next.start()
		p.Said("leads")
		anyOffset()
		p.Kill()
		worst = max(worst, f.leadsAgain("v1", time.Now()))
		want = append(want, "v2", "v1")
		f.goesOn(5)
	}
	f.goesOn(int(lease / fleetEvery)) // tasks of the last killed leader run again when its lease is over
	f.ends(old)

	f.wantTerms(want...)
	if limit := lease + lease*3/20; worst > limit {
		t.Errorf("v1 led again %s after the crash, want it within %s", worst, limit)
	}
	f.wantSteady("new release crash-loops, no min_ready", 0,
		fmt.Sprintf("lease %s; the old one led again within %s", lease, worst.Round(time.Millisecond)))
}

// leadsAgain waits until a release leads, and returns how long after a moment that was, by the events.
func (f *fleet) leadsAgain(version string, since time.Time) time.Duration {
	f.Helper()
	var last event
	testredis.Eventually(f, 20*time.Second, func() bool {
		list := f.events("leader")
		last = list[len(list)-1]
		return last.Fields["release"] == version
	}, "%s does not lead again", version)
	return last.At.Sub(since)
}
