package queue_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// waits counts what asks Redis to wait for replicas.
type waits struct{ n atomic.Int64 }

func (*waits) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*waits) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (w *waits) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if c.Name() == "wait" {
				w.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// With a replica that answers, each write waits for it. With a replica that does not, one write waits, and those
// of the next second do not. This is reported once, and again when there are enough replicas.
func TestDurable_waitsForReplicasAndSaysWhenThereAreTooFew(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	type report struct {
		replicas int
		enough   bool
	}
	reports := make(chan report, 10)
	client, asked := primary.Client(), &waits{}
	client.AddHook(asked)
	for _, s := range store.Scripts() { // so that none is sent twice
		if err := s.Load(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	rdb := store.Durable(client, store.Durability{
		Replicas: 1, Timeout: 2 * time.Second,
		Report: func(n int, enough bool) { reports <- report{n, enough} },
	})
	w := worldIn(t, rdb, "durable")
	add := func() {
		t.Helper()
		refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{{ID: task.NewID(time.Now()), Type: "job"}}, true)
		w.must(err)
		w.must(errors.Join(refused...))
	}
	for range 3 {
		add()
	}
	w.join("one") // an instance's own calls do not wait
	if n := asked.n.Load(); n != 3 || len(reports) != 0 {
		t.Fatalf("WAIT was sent %d times for 3 writes, and there were %d reports", n, len(reports))
	}
	there, err := replica.Client().HLen(t.Context(), w.keys.Tasks).Result()
	if there != 3 || err != nil {
		t.Errorf("%d of 3 tasks are on the replica, %v", there, err)
	}

	replica.Pause()
	began := time.Now()
	add()
	if took := time.Since(began); took < 1900*time.Millisecond {
		t.Errorf("it waited %s for a replica that does not answer, want 2s", took)
	}
	add()
	if n := asked.n.Load(); n != 4 {
		t.Errorf("WAIT was sent %d times, want 4: none in the second after it came to nothing", n)
	}
	if got := <-reports; got != (report{0, false}) {
		t.Errorf("report %+v", got)
	}
	replica.Resume()
	testredis.Eventually(t, 20*time.Second, func() bool { add(); return len(reports) > 0 }, "there are enough again")
	if got := <-reports; got != (report{1, true}) {
		t.Errorf("report %+v", got)
	}
}

// A write whose primary is lost while it waits was not answered, whatever became of it.
func TestDurable_aPrimaryLostWhileWaitingHasNotAnswered(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	w := worldIn(t, store.Durable(primary.Client(), store.Durability{Replicas: 1, Timeout: 2 * time.Second}), "durable")
	replica.Pause()
	plain := primary.Client()
	enqueued := make(chan error, 1)
	go func() {
		_, _, err := w.q.Enqueue(t.Context(), []*task.Task{{ID: "t", Type: "job"}}, true)
		enqueued <- err
	}()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return plain.HLen(t.Context(), w.keys.Tasks).Val() == 1
	}, "the primary has the task")
	primary.Kill()
	if err := <-enqueued; !store.Retryable(err) {
		t.Errorf("enqueue: %v, want that Redis is out of reach", err)
	}
}

// Strict: a write that no replica has is not answered, so claimed tasks do not begin. They begin when there is a replica
// again, though the claim was written before.
func TestDurable_strict(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	w := worldIn(t, store.Durable(primary.Client(), store.Durability{Replicas: 1, Timeout: 500 * time.Millisecond, Strict: true}), "durable")
	enqueue := func(id string) error {
		refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{{ID: id, Type: "job"}}, false)
		return errors.Join(append(refused, err)...)
	}
	c := w.join("one")
	for _, id := range []string{"a", "b"} {
		testredis.Eventually(t, 20*time.Second, func() error { // on a busy machine the replica may take longer than is allowed
			if err := enqueue(id); !errors.Is(err, task.ErrDuplicate) {
				return err
			}
			return nil
		}, "it is on both")
	}
	c.claim(1, lanesOf("job"))
	replica.Pause()
	for range 3 { // not only the first
		if err := enqueue("c"); !errors.Is(err, task.ErrUnreplicated) || !store.Retryable(err) {
			t.Errorf("enqueue: %v", err)
		}
	}
	if r, err := w.q.Cycle(t.Context(), c.request(1, lanesOf("job"))); !errors.Is(err, task.ErrUnreplicated) || r != nil {
		t.Errorf("it may begin %+v, %v", r, err)
	}
	// Its claims can be read: an instance that leaves must know them to hand them back.
	if held, _, err := w.q.Claims(t.Context(), c.gen, c.id); err != nil || len(held) != 2 {
		t.Errorf("it holds %d tasks, want a and b, %v", len(held), err)
	}
	if there, err := w.q.Exist(t.Context(), []string{"a", "z"}); err != nil || !there[0] || there[1] {
		t.Errorf("a and not z: %v, %v", there, err)
	}
	replica.Resume()
	testredis.Eventually(t, 20*time.Second, func() error {
		_, err := w.q.Cycle(t.Context(), c.request(0, nil))
		return err
	}, "a call is answered again")
	held, _, err := w.q.Claims(t.Context(), c.gen, c.id)
	w.must(err)
	if len(held) != 2 {
		t.Errorf("it holds %d tasks, want a and b, which was claimed before", len(held))
	}
}

// A primary that lost a replica gives nothing away for a moment. If it is the primary after all, the claimed tasks begin.
func TestDurable_aPrimaryThatLostAReplicaIsSuspect(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	w := worldIn(t, store.Durable(primary.Client(), store.Durability{Replicas: 1, Timeout: 500 * time.Millisecond}), "durable")
	c := w.join("one")
	_, _, err := w.q.Enqueue(t.Context(), []*task.Task{{ID: "a", Type: "job"}, {ID: "b", Type: "job"}}, false)
	w.must(err)
	c.claim(1, lanesOf("job"))
	replica.Kill()
	plain := primary.Client()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return strings.Contains(plain.Info(t.Context(), "replication").Val(), "connected_slaves:0")
	}, "the primary sees that it left")
	began := time.Now()
	if _, err := w.q.Cycle(t.Context(), c.request(1, lanesOf("job"))); !errors.Is(err, store.ErrSuspect) || !store.Retryable(err) {
		t.Errorf("claim: %v", err)
	}
	testredis.Eventually(t, 20*time.Second, func() error {
		_, err := w.q.Cycle(t.Context(), c.request(0, nil))
		return err
	}, "it is believed again")
	if took := time.Since(began); took < 2900*time.Millisecond {
		t.Errorf("it was suspect for %s, want 3s", took)
	}
	held, _, err := w.q.Claims(t.Context(), c.gen, c.id)
	w.must(err)
	if len(held) != 2 {
		t.Errorf("it holds %d tasks, want a and b, which was claimed meanwhile", len(held))
	}
}

func TestDurability_refusesWhatCouldNotWork(t *testing.T) {
	t.Parallel()
	for _, d := range []store.Durability{{Replicas: -1}, {Strict: true}, {Replicas: 101}, {Replicas: 1, Timeout: time.Microsecond}, {Replicas: 1, Timeout: 3 * time.Second},
		{Timeout: time.Second}} {
		if err := d.Validate(); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := (store.Durability{Replicas: 1, Timeout: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}

// The cost of waiting for a replica, for one caller. docs/design.md has the figures, on one machine of two cores with Redis
// 7.0.
func BenchmarkDurable(b *testing.B) {
	for _, n := range []int{0, 1} {
		b.Run(strconv.Itoa(n)+" replicas", func(b *testing.B) {
			primary, _ := testredis.Replicated(b)
			w := worldIn(b, store.Durable(primary.Client(), store.Durability{Replicas: n}), "durable")
			for b.Loop() {
				_, _, err := w.q.Enqueue(b.Context(), []*task.Task{{ID: task.NewID(time.Now()), Type: "job"}}, true)
				w.must(err)
			}
		})
	}
}

// A primary that becomes a replica while it waits has not answered either: the write is about to be lost.
func TestDurable_aPrimaryDemotedWhileWaitingHasNotAnswered(t *testing.T) {
	t.Parallel()
	primary, replica := testredis.Replicated(t)
	w := worldIn(t, store.Durable(primary.Client(), store.Durability{Replicas: 1, Timeout: 2 * time.Second}), "durable")
	replica.Pause()
	defer replica.Resume()
	plain := primary.Client()
	enqueued := make(chan error, 1)
	go func() {
		_, _, err := w.q.Enqueue(t.Context(), []*task.Task{{ID: "t", Type: "job"}}, true)
		enqueued <- err
	}()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return plain.HLen(t.Context(), w.keys.Tasks).Val() == 1
	}, "the primary has the task")
	host, port, err := net.SplitHostPort(replica.Addr())
	w.must(err)
	w.must(plain.ReplicaOf(t.Context(), host, port).Err())
	if err := <-enqueued; !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("enqueue: %v, want that Redis is out of reach", err)
	}
}

// The same if it has become one when it is asked to wait: a script that only reads stands for one that wrote before.
func TestDurable_aPrimaryDemotedBeforeWaitingHasNotAnswered(t *testing.T) {
	t.Parallel()
	_, replica := testredis.Replicated(t)
	w := worldIn(t, store.Durable(replica.Client(), store.Durability{Replicas: 1}), "durable")
	if _, err := w.q.Schedule(t.Context(), "s"); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("%v, want that Redis is out of reach", err)
	}
}

func TestDurability_refusesAClientThatGivesUpBefore(t *testing.T) {
	t.Parallel()
	one := store.Durability{Replicas: 1}
	for _, c := range []struct {
		read    time.Duration
		d       store.Durability
		refused bool
	}{
		{0, one, false},  // the client's default, which is more
		{-1, one, false}, // it waits for ever
		{100 * time.Millisecond, one, true},
		{200 * time.Millisecond, one, true},
		{300 * time.Millisecond, one, false},
		{100 * time.Millisecond, store.Durability{}, false},
		{time.Second, store.Durability{Replicas: 1, Timeout: 2 * time.Second}, true},
		{time.Minute, store.Durability{Replicas: 1, Timeout: 3 * time.Second}, true},
	} {
		for _, rdb := range []redis.UniversalClient{
			redis.NewClient(&redis.Options{ReadTimeout: c.read}),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: c.read}),
		} {
			err := c.d.ValidateFor(rdb)
			var field *task.FieldError
			if refused := errors.As(err, &field) && field.Field == "timeout"; refused != c.refused || (err != nil) != c.refused {
				t.Errorf("read timeout %v, %+v, %T: %v", c.read, c.d, rdb, err)
			}
			_ = rdb.Close()
		}
	}
}

// A caller that gives up before replicas have been waited for would never learn that there are too few, and wait again
// with each try.
func TestDurable_waitsNoLongerThanItsCallerDoes(t *testing.T) {
	t.Parallel()
	reports := make(chan bool, 10)
	rdb := store.Durable(testredis.Private(t).Client(), store.Durability{
		Replicas: 1, Timeout: 2 * time.Second, Report: func(_ int, enough bool) { reports <- enough },
	})
	w := worldIn(t, rdb, "durable")
	ctx, done := context.WithTimeout(t.Context(), time.Second)
	defer done()
	refused, _, err := w.q.Enqueue(ctx, []*task.Task{job("x")}, true)
	w.must(err)
	w.must(errors.Join(refused...))
	if enough := <-reports; enough {
		t.Error("there are enough replicas, and there are none")
	}
}
