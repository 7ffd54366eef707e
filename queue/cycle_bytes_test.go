package queue_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// A hundred free workers and payloads of a megabyte must not make one reply of a hundred megabytes, which no client
// could read in time: the claim is cut, says that it left due work behind, and the next goes on.
func TestCycle_boundsTheBytesOfAClaim(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const size, n = 1 << 20, 10
		for i := range n {
			w.add(task.New("job", make([]byte, size), task.ID(fmt.Sprint("big", i))))
		}
		w.add(job("small"))
		got, calls := map[string]bool{}, 0
		for left := true; left; calls++ {
			r := a.cycle(100, lanesOf("job"))
			bytes := 0
			for _, x := range r.Claimed {
				got[x.ID] = true
				bytes += len(x.Payload)
			}
			if bytes > 4*size {
				t.Fatalf("%d bytes in one claim", bytes)
			}
			if len(r.Claimed) == 0 && r.LeftDue {
				t.Fatal("due work is left behind and nothing was claimed")
			}
			left = r.LeftDue
		}
		same(t, "claimed", len(got), n+1)
		if calls < 3 {
			t.Errorf("%d calls", calls)
		}
	})
}
