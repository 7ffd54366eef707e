package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// says reports whether err is of the number of partitions that Redis knows.
func says(err error, number string) bool {
	return errors.Is(err, queue.ErrPartitions) && strings.Contains(err.Error(), "PARTITIONS "+number)
}

func TestSplit_isForEver(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		ns := testredis.Namespace(t)
		count := func(want int) {
			t.Helper()
			if n, err := queue.Partitions(t.Context(), rdb, ns); n != want || err != nil {
				t.Fatalf("%d %v, want %d", n, err, want)
			}
		}
		count(0)
		for range 2 {
			if _, err := queue.Split(t.Context(), rdb, ns, 3); err != nil {
				t.Fatal(err)
			}
			count(3)
		}
		if _, err := queue.Split(t.Context(), rdb, ns, 4); !says(err, "3") {
			t.Error(err)
		}
		count(3)
		types, err := queue.Split(t.Context(), rdb, ns, 3, "mail", "sms")
		more, err2 := queue.Split(t.Context(), rdb, ns, 3, "mail", "fax")
		all, err3 := queue.Split(t.Context(), rdb, ns, 3)
		slices.Sort(all)
		if len(types) != 2 || len(more) != 3 || !slices.Equal(all, []string{"fax", "mail", "sms"}) || errors.Join(err, err2, err3) != nil {
			t.Errorf("limited: %v, %v, %v: %v", types, more, all, errors.Join(err, err2, err3))
		}
	})
}

func TestSplit_notOfWhatIsInUse(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		w.join("a")
		if _, err := queue.Split(t.Context(), rdb, w.part.Namespace, 3); !says(err, "1") {
			t.Error(err)
		}
		w.join("b") // and works on
	})
}

// A caller that does not know that a namespace is split changes nothing in it.
func TestSplit_refusesThoseWhoDoNotKnow(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		_, err := queue.Split(t.Context(), rdb, w.part.Namespace, 3)
		w.must(err)
		p, err := producer.New(rdb, w.part.Namespace, producer.Config{})
		w.must(err)
		for name, do := range map[string]func(ctx context.Context) error{
			"register": func(ctx context.Context) error {
				_, _, _, err := w.reg.Register(ctx, instance.Config{}, instance.Past{})
				return err
			},
			"enqueue": func(ctx context.Context) error { _, err := p.Enqueue(ctx, task.New("x", nil)); return err },
			"apply": func(ctx context.Context) error {
				_, err := producer.NewSchedules(p, nil).Apply(ctx, producer.Schedule{Name: "s", Rule: schedule.Every(1e9), Task: "x"})
				return err
			},
		} {
			if err := do(t.Context()); !says(err, "3") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := rdb.HLen(t.Context(), w.keys.Meta).Val(); n != 1 {
			t.Errorf("meta has %d fields", n)
		}
		if n := rdb.Exists(t.Context(), w.keys.Tasks, w.keys.Lanes, w.keys.Instances, w.keys.Schedules, w.keys.Members).Val(); n != 0 {
			t.Errorf("%d keys", n)
		}
	})
}

// A client that has a queue of a partition leads packages above into that partition, by the name of the namespace.
func TestOf_findsThePartition(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		ns := testredis.Namespace(t)
		q, err := queue.New(rdb, queue.Partition{Namespace: ns, Number: 2}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := producer.New(q.Client(), ns, producer.Config{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.Enqueue(t.Context(), task.New("x", nil))
		if err != nil {
			t.Fatal(err)
		}
		if !rdb.HExists(t.Context(), "onbeat:{"+ns+"#2}:tasks", id).Val() {
			t.Error("the task is not in the partition")
		}
		if other, err := queue.Of(q.Client(), ns+"x"); err != nil || other == q {
			t.Errorf("%v %v", other, err)
		}
	})
}

// A node that comes back empty loses the number of partitions. Until an instance writes it again, the namespace is not taken for one that
// is not split.
func TestPartitions_ofALostNumber(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		ns := testredis.Namespace(t)
		if n, err := queue.Partitions(t.Context(), rdb, ns); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := queue.Split(t.Context(), rdb, ns, 3); err != nil {
			t.Fatal(err)
		}
		base, one := queue.Partition{Namespace: ns}, queue.Partition{Namespace: ns, Number: 2}
		if err := rdb.HSet(t.Context(), one.Keys().Meta, "done", 1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Del(t.Context(), base.Keys().Meta).Err(); err != nil {
			t.Fatal(err)
		}
		if n, err := queue.Partitions(t.Context(), rdb, ns); !errors.Is(err, queue.ErrNumberLost) || !errors.Is(err, queue.ErrPartitions) {
			t.Errorf("%d %v", n, err)
		}
		if _, err := queue.Split(t.Context(), rdb, ns, 3); err != nil {
			t.Error(err)
		}
		if n, err := queue.Partitions(t.Context(), rdb, ns); n != 3 || err != nil {
			t.Errorf("%d %v", n, err)
		}
	})
}

// A number of partitions that another program wrote is refused, with the key that has it.
func TestPartitions_refusesANumberThatIsNone(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	for _, text := range []string{"x", "0", "1", "-3", "257", "1000000000", ""} {
		ns := testredis.Namespace(t)
		meta := queue.Partition{Namespace: ns}.Keys().Meta
		if err := rdb.HSet(t.Context(), meta, "partitions", text).Err(); err != nil {
			t.Fatal(err)
		}
		if n, err := queue.Partitions(t.Context(), rdb, ns); err == nil || n != 0 || !strings.Contains(err.Error(), meta) {
			t.Errorf("%q: %d %v", text, n, err)
		}
	}
}
