package instance

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestHeartbeat_saysWhatIsLeftOfTheLeadersLease(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		idle := r.up("idle", "", standby)
		if b := r.beat(idle); b.Left >= 0 {
			t.Errorf("%v are left though nobody leads", b.Left)
		}
		lead := r.up("lead", "")
		r.expire(lead, -20*time.Second) // they are left
		if b := r.beat(idle); b.Left < 15*time.Second || b.Left > 20*time.Second {
			t.Errorf("%v are left, want nearly 20s", b.Left)
		}
	})
}

// An instance with much time to its next heartbeat asks at the moment that the leader's lease runs out.
func TestManager_leadsOnceTheLeadersLeaseHasRunOut(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		const lease = 20 * time.Second // a heartbeat is due after 3.6 s at the earliest
		spare := r.node(Config{ID: "spare", Lease: lease})
		session := spare.session()
		led := leading(session)
		wait(t, led.began, "its term")
		lead := r.up("lead", "")
		r.expire(lead, -500*time.Millisecond) // it is left, and then it crashes
		session.Doubt()
		wait(t, led.ended, "the end of its term")
		from := time.Now()
		wait(t, led.began, "its second term")
		if took := time.Since(from); took > 2*time.Second {
			t.Errorf("the spare led %v after it had seen a leader with half a second left", took)
		}
	})
}
