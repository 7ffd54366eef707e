package queue_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
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

// A flood of large tasks takes its part of a claim, and leaves the other types of its queue theirs. Less urgent tasks
// wait for the whole flood.
func TestCycle_sharesTheBytesOfAClaim(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		for i := range 10 {
			w.add(task.New("big", make([]byte, 1<<20), task.ID(fmt.Sprint("big", i))))
		}
		w.add(task.New("beat", nil, task.ID("beat")), task.New("big", nil, task.ID("later"), task.WithPriority(task.Low)))
		r := a.cycle(100, append(lanesOf("big", "beat"), queue.LaneClaim{Lane: queue.Lane{Queue: task.DefaultQueue, Priority: task.Low, Type: "big"}, Group: 1}))
		got := map[string]bool{}
		for _, x := range r.Claimed {
			got[x.ID] = true
		}
		if !got["big0"] || !got["beat"] || got["later"] || len(got) > 5 {
			t.Errorf("claimed %v: want a few large ones and the beat, and nothing less urgent", got)
		}
		if !r.LeftDue {
			t.Error("due work was left behind, and nobody is told")
		}
	})
}

// The reply names the due time of the first task that did not fit.
func TestCycle_nextDueIsThatOfTheFirstTaskThatDidNotFit(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		list := slots("s", lane("job"), 1, 10)
		for _, x := range list[:6] {
			x.Payload = make([]byte, 1<<20)
		}
		w.add(list...)
		r := a.cycle(8, lanesOf("job"))
		equal(t, "claimed", ids(r.Claimed), []string{"s@1", "s@2", "s@3"})
		same(t, "next due", r.NextDue, list[3].Due.UTC())
	})
}
