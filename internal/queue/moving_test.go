package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func clientOfCluster(t *testing.T, c *testredis.ClusterGroup) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(strings.TrimPrefix(c.URL(), "redis-cluster://"), ",")})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// While a slot is moved, neither node takes a script whose keys are on both, or are not there yet. It waits for the end
// of the move, happens once, and says what it waits for if that does not come.
func TestScript_waitsWhileASlotOfAClusterIsMoved(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	w := worldIn(t, clientOfCluster(t, c), "moving")
	w.add(jobs("before", 3)...)
	m := c.BeginMove(t, w.keys.Meta)
	err := context.DeadlineExceeded
	for limit := 700 * time.Millisecond; errors.Is(err, context.DeadlineExceeded) && limit < time.Minute; limit *= 2 { // a busy machine did not even answer
		short, done := context.WithTimeout(t.Context(), limit)
		_, _, err = w.q.Enqueue(short, jobs("refused", 1), true)
		done()
	}
	if !errors.Is(err, task.ErrBusy) || !store.OfMove(err) || !strings.Contains(err.Error(), "the cluster is moving a slot") {
		t.Fatalf("while it is moved: %v", err)
	}
	asked := time.Now()
	if _, err := w.reg.Heartbeat(t.Context(), "nobody", 1, time.Minute, time.Time{}, ""); !store.OfMove(err) || time.Since(asked) > 20*time.Second {
		t.Errorf("it is said after %v: %v", time.Since(asked), err)
	}

	m.Keys(w.keys.Meta) // and the others are still where they were
	ended := make(chan time.Time, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		m.End()
		ended <- time.Now()
	}()
	w.add(jobs("meanwhile", 1)...)
	t.Logf("it was taken %v after the end of the move", time.Since(<-ended).Round(time.Millisecond))
	same(t, "tasks", w.count(w.keys.Tasks), 4)
}

// With durability a script goes where its slot has gone, and waits for the replicas there.
func TestDurable_followsASlotOfACluster(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	reports := make(chan int, 10)
	rdb := clientOfCluster(t, c)
	w := worldIn(t, store.Durable(rdb, store.Durability{
		Replicas: 1, Timeout: time.Second, Report: func(n int, _ bool) { reports <- n },
	}), "followed")
	w.add(jobs("before", 1)...)
	c.BeginMove(t, w.keys.Meta).End()
	for i := range 5 { // the client does not know
		if _, added, err := w.q.Enqueue(t.Context(), jobs("after"+string(rune('a'+i)), 1), true); err != nil || added != 1 {
			t.Fatalf("added %d: %v", added, err)
		}
	}
	select {
	case n := <-reports:
		t.Errorf("%d replicas", n)
	default:
	}
	for _, key := range []string{w.keys.Schedules, w.keys.Last, w.keys.Behind, w.keys.Pauses} { // all that the script asks for is there
		w.must(w.rdb.HSet(t.Context(), key, "other", "x").Err())
	}
	m := c.BeginMove(t, w.keys.Meta)
	m.Keys()
	for range 3 { // the slot is still of the first, and all keys are on the other
		_, err := w.q.SchedulesNamed(t.Context(), []string{"none"})
		w.must(err)
	}
	m.End()
}
