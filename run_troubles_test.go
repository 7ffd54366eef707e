package onbeat_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// ops is a target of the default topics, with short windows.
func ops(in *inbox) []notify.Target {
	return []notify.Target{{Name: "ops", URL: in.URL, Key: in.key, Window: time.Second}}
}

// notices are the notices of a topic that came, each as a line.
func (in *inbox) notices(topic notify.Topic) (lines []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range in.got {
		if m.Topic == topic {
			lines = append(lines, m.Lines()...)
		}
	}
	return lines
}

// While all workers hang, a message says so within a window and 15 s, once, and names what holds them; messages of other topics come too.
func TestNotify_tellsThatAllWorkersHang(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	in, heldUp := newInbox(t), testredis.Witness(t, rdb)
	d := dispatcher(t, rdb, onbeat.Config{Namespace: testredis.Namespace(t), Concurrency: 2, Drain: -1, Notify: ops(in)})
	var hung atomic.Int32
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error {
		hung.Add(1)
		<-ctx.Done()
		return ctx.Err()
	})))
	defer run(t, d)()
	for _, id := range []string{"first", "second", "third"} {
		_, err := d.Enqueue(t.Context(), task.New("job", nil, task.ID(id)))
		must(t, err)
	}
	testredis.Eventually(t, patience, func() bool { return hung.Load() == 2 }, "both workers hang")
	since := time.Now()
	heldUp()
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Hung)) > 0 }, "a message")
	if took, held := time.Since(since), heldUp(); took > 16*time.Second+2*held {
		t.Errorf("the message came after %v; Redis did not answer for %v", took, held)
	}
	_, err := d.Enqueue(t.Context(), task.New("jbo", nil)) // and another trouble, to see that windows go on
	must(t, err)
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Unhandled)) > 0 }, "a message of the other trouble")
	if got := in.notices(notify.Hung); len(got) != 1 || !strings.Contains(got[0], "first (") || !strings.Contains(got[0], "second (") || hung.Load() != 2 {
		t.Errorf("%d hang; told %q", hung.Load(), got)
	}
	if got := in.notices(notify.Unhandled); len(got) != 1 || !strings.HasPrefix(got[0], "jbo: ") || !strings.Contains(got[0], "job") {
		t.Errorf("told %q", got)
	}
}

// A run of a schedule that lasts longer than the gap is told of by the name of the schedule, though other workers are free.
func TestNotify_tellsOfAScheduleThatHangs(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	in := newInbox(t)
	d := dispatcher(t, rdb, onbeat.Config{Namespace: testredis.Namespace(t), Drain: -1, Notify: ops(in)})
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error { <-ctx.Done(); return ctx.Err() })))
	often := schedule.Every(2 * time.Second)
	often.Overlap = schedule.OverlapSkip
	must(t, d.Schedule("often", often, "job", nil))
	defer run(t, d)()
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Hung)) > 0 }, "a message")
	if got := in.notices(notify.Hung); len(got) != 1 || !strings.HasPrefix(got[0], "often: ") {
		t.Errorf("told %q", got)
	}
}

// A release that does not declare a schedule any more is told of by the name of the schedule.
func TestNotify_tellsOfARetiredSchedule(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	in := newInbox(t)
	ns := testredis.Namespace(t)
	start := func(release string) *onbeat.Dispatcher {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Release: release, Notify: ops(in)})
		must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return nil })))
		return d
	}
	first, second := start("v1"), start("v2")
	must(t, first.Schedule("nightly", schedule.Every(time.Hour), "job", nil))
	defer run(t, first)()
	testredis.Eventually(t, patience, func() bool { return rdb.Exists(t.Context(), "onbeat:{"+ns+"}:notices").Val() == 1 }, "the leader has begun to follow")
	testredis.Eventually(t, patience, func() bool { return rdb.HLen(t.Context(), first.Queue().Keys().Schedules).Val() == 1 }, "it is declared")
	defer run(t, second)()
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Retired)) > 0 }, "a message")
	if got := in.notices(notify.Retired); len(got) != 1 || !strings.HasPrefix(got[0], "nightly: release v2 ") {
		t.Errorf("told %q", got)
	}
}

// Redis comes back empty, also without the notes of the notifier. A message says so once.
func TestNotify_tellsThatRedisLostItsData(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	in := newInbox(t)
	d := dispatcher(t, rdb, onbeat.Config{Namespace: testredis.Namespace(t), Lease: 2 * time.Second, Notify: ops(in)})
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	defer run(t, d)()
	notices := d.Queue().Keys().Notices
	testredis.Eventually(t, patience, func() bool { return rdb.Exists(t.Context(), notices).Val() == 1 }, "the leader has begun to follow")
	empty(t, rdb, d)
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Lost)) > 0 }, "a message")
	_, err := d.Enqueue(t.Context(), task.New("jbo", nil)) // and another trouble, to see that windows go on
	must(t, err)
	testredis.Eventually(t, patience, func() bool { return len(in.notices(notify.Unhandled)) > 0 }, "a message of the other trouble")
	if got := in.notices(notify.Lost); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}

// empty removes all keys of a dispatcher's namespace.
func empty(t *testing.T, rdb *redis.Client, d *onbeat.Dispatcher) {
	t.Helper()
	prefix := strings.TrimSuffix(d.Queue().Keys().Notices, "notices")
	keys, err := rdb.Keys(t.Context(), prefix+"*").Result()
	must(t, err)
	must(t, rdb.Del(t.Context(), keys...).Err())
}
