package integration

import (
	"fmt"
	"testing"

	"github.com/onbeat/onbeat/integration/internal/rig"
)

// Rolling updates go from the program of the earlier release to the program of this tree, back, and on again. No slot is
// missed, doubled, early or off its grid. Each program runs tasks that the other enqueued, and both audits are clean.
func TestUpgrade_rolledOnAndBackMissesNoBeat(t *testing.T) {
	beginBuild(t, earlierBinary)
	t.Parallel()
	for _, c := range []struct {
		name, head string
		replicas   int
	}{
		{"one replica each", "", 1},
		{"two replicas each", "consume: release\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpgrade(t, c.head)
			u.step("v1 of the %s starts", u.old)
			live := u.crew(u.old, "v1").up(c.replicas)
			u.appliesByHand()
			order := []string{"v1"}
			u.goesOn(5)
			for n := range rig.Size(3, 21) {
				u.enqueues(u.old)
				u.enqueues(u.next)
				p, version, other := u.next, "v2", u.old
				if n%2 == 1 {
					p, version, other = u.old, "v1", u.next
				}
				live = u.crew(p, version).rollout(live)
				order = append(order, version)
				u.meddles(other, n%2 == 0)
				u.goesOn(rig.Size(12, 25))
				u.audited(u.old)
				u.audited(u.next)
			}
			u.done()
			u.ends(live)

			u.wantReigns(order...)
			u.wantJobs(false)
			u.wantUntouched()
			u.wantWhole("the earlier release and this one rolled over each other, "+c.name, false,
				fmt.Sprintf("%d rollouts; %d of %d one-off tasks ran on the other program", len(order)-1, u.crossed(), len(u.jobs)))
		})
	}
}

// A leader of this tree is killed, and an instance of the earlier release takes over; then the other way round. Each takes
// back and runs the tasks that the other held.
func TestUpgrade_aKilledLeaderIsFollowedByTheOtherProgram(t *testing.T) {
	beginBuild(t, earlierBinary)
	t.Parallel()
	u := newUpgrade(t, "")
	u.step("v1 of the %s starts", u.old)
	old := u.crew(u.old, "v1").up(1)
	u.appliesByHand()
	u.goesOn(5)
	number, order := 1, []string{"v1"}
	up := func(p program) *crew { // a new release each time: even numbers are of the new program
		number++
		if (number%2 == 1) != (p == u.old) {
			number++
		}
		c := u.crew(p, fmt.Sprintf("v%d", number))
		order = append(order, c.version)
		u.step("%s starts", c)
		return c.up(1)
	}
	for range rig.Size(1, 10) {
		killed := up(u.next)
		u.enqueues(u.next)
		u.goesOn(3)
		led := old.replicas[0].Says("leads")
		killed.kill()
		old.replicas[0].SaidTimes("leads", led+1)
		order = append(order, old.version)
		u.meddles(u.next, true)
		u.goesOn(8)
		next := up(u.next)
		u.goesOn(3)
		old.replicas[0].Stop()

		killed = up(u.old)
		u.enqueues(u.old)
		u.goesOn(3)
		led = next.replicas[0].Says("leads")
		killed.kill()
		next.replicas[0].SaidTimes("leads", led+1)
		order = append(order, next.version)
		u.meddles(u.old, false)
		u.goesOn(8)
		old = up(u.old)
		u.goesOn(3)
		next.replicas[0].Stop()
	}
	u.goesOn(int(upgradeLease / fleetEvery)) // what the last one held runs again when its lease is over
	u.done()
	u.ends(old)

	u.wantReigns(order...)
	u.wantJobs(true)
	u.wantUntouched()
	u.wantWhole(fmt.Sprintf("a leader of either program killed (lease %s), the other takes over", upgradeLease), true,
		fmt.Sprintf("%d kills; %d of %d one-off tasks ran on the other program", 2*rig.Size(1, 10), u.crossed(), len(u.jobs)))
}
