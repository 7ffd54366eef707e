package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

// Releases in a row, each new one up before the old one gets SIGTERM, at random offsets around the slots.
func TestRollout_releasesInARowMissNoBeat(t *testing.T) {
	for _, c := range []struct {
		name, head string
		replicas   int
		sticky     bool
	}{
		{"one replica each", "", 1, false},
		{"three replicas each", "consume: release\n", 3, false},
		{"three replicas each, sticky", "consume: release\nlead: sticky\n", 3, true},
	}[:testredis.Size(2, 3)] {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.head)
			live := f.release("v1").up(c.replicas)
			versions := []string{"v1"}
			f.goesOn(testredis.Size(5, 20))
			for n := range testredis.Size(2, 10) {
				version := fmt.Sprintf("v%d", n+2)
				live = f.release(version).rollout(live)
				f.goesOn(testredis.Size(5, 20))
				versions = append(versions, version)
			}
			f.ends(live)

			f.wantReigns(versions...)
			led := f.led()
			if c.replicas > 1 && !c.sticky { // each new replica leads when it is ready
				led = slices.Compact(led)
			}
			if !slices.Equal(led, versions) {
				t.Errorf("terms of %v, want %v", led, versions)
			}
			f.wantSteady(fmt.Sprintf("%d rollouts, %s", len(versions)-1, c.name), 2*fleetEvery,
				fmt.Sprintf("%d changes of leader", len(f.led())-1))
		})
	}
}

// A release is rolled back: the release before it is the newest again.
func TestRollout_aRollbackIsARollout(t *testing.T) {
	testredis.OnlyInASoak(t)
	f := newFleet(t, "consume: release\n")
	good := f.release("v1").up(2)
	f.goesOn(5)
	bad := f.release("v2").rollout(good)
	f.goesOn(5)
	again := f.release("v1").rollout(bad)
	f.goesOn(5)
	f.ends(again)

	f.wantReigns("v1", "v2", "v1")
	f.wantSteady("rollback", 2*fleetEvery)
}

// Two full releases live side by side for a while: the new one works from the moment it is up, the old one is idle.
func TestRollout_blueGreenWorksOnOneSide(t *testing.T) {
	testredis.OnlyInASoak(t)
	f := newFleet(t, "consume: release\n")
	blue := f.release("blue").up(3)
	f.goesOn(5)
	green := f.release("green").up(3)
	f.goesOn(100)
	blue.down()
	f.goesOn(5)
	f.ends(green)

	f.wantReigns("blue", "green")
	f.wantSteady("blue-green, three replicas each", 2*fleetEvery)
}

// In the middle of a rollout both releases get more replicas. New replicas of the old release start later than the new
// release, and still count as old.
func TestRollout_scaleUpInTheMiddleChangesNothing(t *testing.T) {
	testredis.OnlyInASoak(t)
	f := newFleet(t, "consume: release\nlead: sticky\n")
	old := f.release("v1").up(2)
	f.goesOn(5)
	next := f.release("v2").up(1)
	f.goesOn(5)
	old.up(2)
	f.goesOn(5)
	next.up(3)
	f.goesOn(5)
	old.down()
	f.goesOn(5)
	f.ends(next)

	f.wantReigns("v1", "v2")
	f.wantTerms("v1", "v2")
	f.wantSteady("scale-up in mid-rollout", 2*fleetEvery)
}

// The last replica of the old release crashes in mid-rollout, and its supervisor starts it again. It started later than the
// new release, but must not lead.
func TestRollout_anOldReplicaThatRestartsDoesNotLead(t *testing.T) {
	f := newFleet(t, "consume: release\nlease: "+shortLease()+"\n")
	old := f.release("v1").up(2)
	f.goesOn(5)
	next := f.release("v2").up(1)
	f.goesOn(5)
	old.replicas[0].Stop()
	for range testredis.Size(1, 5) {
		old.replicas[len(old.replicas)-1].Kill()
		f.goesOn(35) // longer than its lease
		old.up(1)
		f.goesOn(5)
	}
	next.up(1)
	old.down()
	f.goesOn(5)
	f.ends(next)

	f.wantReigns("v1", "v2")
	if led := slices.Compact(f.led()); !slices.Equal(led, []string{"v1", "v2"}) && !f.stalled() {
		t.Errorf("the releases led in the order %v, want v1 and then v2 alone", led)
	}
	f.wantSteady("old replica crashes and restarts in mid-rollout", 2*fleetEvery)
}
