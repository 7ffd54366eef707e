package instance

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// Redis's clock is set back while the leader is dying: its lease must not last until the old time has come again.
func TestHeartbeat_shortensLeasesWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	r := rigOf(t, mini.Client, "back")
	at := time.Now()
	mini.SetTime(at)
	b := r.up("b", "v1")
	a := r.up("a", "v2")
	r.beat(b)
	r.beat(a)
	r.wantLeader("a")

	at = at.Add(20 * time.Second) // which nobody notices
	at = at.Add(-time.Hour)
	mini.SetTime(at)
	r.beat(b)
	for range 3 { // it is shortened once
		at = at.Add(18 * time.Second)
		mini.SetTime(at)
		r.beat(b)
		r.wantLeader("a") // its lease may still run, by whatever clock it has
	}
	at = at.Add(27 * time.Second)
	mini.SetTime(at)
	r.beat(b)
	r.wantLeader("b")
	if _, _, open := r.lead(); open {
		t.Log("the gate was never opened") // nobody opened it
	}
}
