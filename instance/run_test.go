package instance

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onbeat/onbeat/internal/testredis"
)

// No goroutine is left by starting and stopping, at whatever moment. Not parallel: it looks at all goroutines.
func TestManager_leavesNoGoroutines(t *testing.T) {
	r := newRig(t, testredis.Client(t))
	must(t, r.rdb.Ping(t.Context()).Err())
	before := goleak.IgnoreCurrent()
	for i := range 50 {
		n := r.node(Config{Lease: 500 * time.Millisecond})
		if i%2 == 0 {
			lead := leading(n.session())
			if i%4 == 0 {
				wait(t, lead.began, "term")
			}
		}
		must(t, n.leave())
	}
	if err := testredis.Leaks(before); err != nil {
		t.Fatal(err)
	}
	if list, err := r.reg.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("%d are registered, %v", len(list), err)
	}
}

// The commands of an idle instance, by the exact clock of a bubble: its heartbeats, and a ping of its subscription each
// minute.
func TestManager_idleCommandsASecond(t *testing.T) {
	t.Parallel()
	for lease, most := range map[time.Duration]float64{5 * time.Second: 1.2, 15 * time.Second: 0.5} {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
				other, line := r.other(mini)
				other.node(Config{Lease: lease}).session()
				time.Sleep(time.Minute)
				before := line.count()
				const long = 4 * time.Minute
				time.Sleep(long)
				got := float64(line.count()-before)/long.Seconds() + 1.0/60
				if got > most || got < 1/lease.Seconds() {
					t.Fatalf("%.3f commands a second, want at most %v", got, most)
				}
				t.Logf("%.3f commands a second", got)
			})
		})
	}
}
