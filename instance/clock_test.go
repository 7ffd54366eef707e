package instance

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
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

	at = at.Add(20 * time.Second) // no instance notices that
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
		t.Log("the gate was never opened") // no leader opened it
	}
}

// A lost release counts as lost for as long as before, although the clock changed; and an instance must prove itself for as
// long as before.
func TestHeartbeat_movesWhatCountsFromAMomentWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	r := rigOf(t, mini.Client, "back")
	ctx := t.Context()
	at := time.Now()
	tick := func(d time.Duration) {
		at = at.Add(d)
		mini.SetTime(at)
	}
	tick(0)
	old := r.up("old", "v1")
	fresh := r.up("fresh", "v2", func(c *Config) { c.Lease = 30 * time.Second })
	if may, _, err := r.reg.Declare(ctx, r.term(fresh)); err != nil || !may {
		t.Fatal(may, err)
	}
	tick(20 * time.Second)
	r.beat(old)
	tick(20 * time.Second)
	r.beat(old) // fresh is lost
	r.wantLeader("old")
	tick(-time.Hour)
	r.beat(old)
	for range 3 {
		if may, _, err := r.reg.Declare(ctx, r.term(old)); err != nil || may {
			t.Fatalf("it may declare, and the newer release was lost a moment ago: %v", err)
		}
		tick(17 * time.Second)
		r.beat(old)
	}
	tick(10 * time.Second)
	r.beat(old)
	if may, _, err := r.reg.Declare(ctx, r.term(old)); err != nil || !may {
		t.Fatalf("it may not declare a minute later: %v", err)
	}
	tick(25 * time.Second)
	r.beat(old)
	tick(25 * time.Second)
	r.beat(old)
	if n := r.rdb.ZCard(ctx, r.q.Keys().Trial).Val(); n != 0 {
		t.Errorf("it has been ready for two minutes, and is on trial: %d", n)
	}
}
