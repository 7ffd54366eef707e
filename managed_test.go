package onbeat_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Managed services take commands away: they do not know them, or refuse them to every user. A rolling update needs none of these.
func TestManaged_withoutConfigAndPubsub(t *testing.T) {
	t.Parallel()
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		rdb := testredis.Private(t, "--rename-command", "CONFIG", "", "--rename-command", "PUBSUB", "").Client()
		for _, command := range []string{"config", "pubsub"} {
			if err := rdb.Do(t.Context(), command, "help").Err(); !redis.HasErrorPrefix(err, "unknown command") {
				t.Fatalf("%s: %v", command, err)
			}
		}
		wantRollingUpdate(t, rdb)
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		rdb := testredis.User(t, testredis.Real(t), []string{"~*", "&*", "+@all", "-@admin", "+client", "-config", "-pubsub"})
		for _, command := range []string{"config", "pubsub"} {
			if err := rdb.Do(t.Context(), command, "help").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Fatalf("%s: %v", command, err)
			}
		}
		wantRollingUpdate(t, rdb)
	})
}

// wantRollingUpdate fails unless each slot runs once, on its grid and never early, while releases roll over a schedule.
func wantRollingUpdate(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ns := testredis.Namespace(t)
	const every = 100 * time.Millisecond
	var mu sync.Mutex
	slots := map[int64]int{}
	newer := func(release string) (*onbeat.Dispatcher, func()) {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Release: release, Lease: 2 * time.Second})
		if err := errors.Join(d.Handle("beat", handlers.Func(func(_ context.Context, tk *task.Task) error {
			mu.Lock()
			defer mu.Unlock()
			slots[tk.Slot.UnixMilli()]++
			if tk.Claimed.Before(tk.Slot) {
				t.Errorf("slot %v was claimed at %v", tk.Slot, tk.Claimed)
			}
			return nil
		})), d.Schedule("beat", schedule.Rule{Every: every, Missed: schedule.MissedAll}, "beat", nil)); err != nil {
			t.Fatal(err)
		}
		return d, run(t, d)
	}
	more := func(n int) { // waits for some slots more
		t.Helper()
		seen := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(slots)
		}
		before := seen()
		testredis.Eventually(t, time.Minute, func() bool { return seen() >= before+n }, "the slots run")
	}
	d, stop := newer("v1")
	for i := range 3 {
		more(7)
		_, next := newer(fmt.Sprint("v", i+2))
		more(3)
		stop()
		stop = next
	}
	more(5)
	s, err := d.Schedules().Get(t.Context(), "beat")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	n := 0
	mu.Lock()
	defer mu.Unlock()
	for at := s.Anchor; !at.After(s.Last.Add(-every)); at = at.Add(every) {
		n++
		if got := slots[at.UnixMilli()]; got != 1 {
			t.Errorf("slot %v ran %d times", at, got)
		}
		delete(slots, at.UnixMilli())
	}
	if n < 30 || len(slots) > 30 {
		t.Errorf("%d slots were looked at, %d others ran", n, len(slots))
	}
	for ms := range slots {
		if (ms-s.Anchor.UnixMilli())%every.Milliseconds() != 0 {
			t.Errorf("slot %d is not on the grid", ms)
		}
	}
}
