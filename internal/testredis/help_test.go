package testredis

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamespace_leavesNothingBehind(t *testing.T) {
	t.Parallel()
	rdb := Client(t)
	other := Namespace(t)
	if err := rdb.Set(t.Context(), "onbeat:{"+other+"}:due:default", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	var ns string
	t.Run("inner", func(t *testing.T) {
		ns = Namespace(t)
		for _, key := range []string{"onbeat:{" + ns + "}:tasks", "onbeat:{" + ns + "#3}:tasks", ns} {
			if err := rdb.Set(t.Context(), key, 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if keys, err := rdb.Keys(t.Context(), "*"+ns+"*").Result(); len(keys) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", keys, err)
	}
	if keys, err := rdb.Keys(t.Context(), "*"+other+"*").Result(); len(keys) != 1 || err != nil {
		t.Errorf("of another namespace: %v, %v; want its one key", keys, err)
	}
}

func TestNamespace_isValidAndItsOwn(t *testing.T) {
	t.Parallel()
	a, b := Namespace(t), Namespace(t)
	if a == b {
		t.Errorf("two calls returned %s", a)
	}
	if bad := strings.Trim(a, "abcdefghijklmnopqrstuvwxyz0123456789-"); bad != "" || len(a) > 40 {
		t.Errorf("namespace = %s", a)
	}
}

func TestEventually_tellsWhatItWaitedForAndWhy(t *testing.T) {
	t.Parallel()
	n := outcome(t, func(t testing.TB) {
		Eventually(t, time.Millisecond, func() error { return errors.New("two tasks due") }, "queue %s is empty", "q")
	})
	if want := "queue q is empty: not within 1ms: two tasks due"; n.failed != want {
		t.Errorf("failed with %q, want %q", n.failed, want)
	}
	n = outcome(t, func(t testing.TB) { Eventually(t, time.Millisecond, func() bool { return false }, "never") })
	if want := "never: not within 1ms"; n.failed != want {
		t.Errorf("failed with %q, want %q", n.failed, want)
	}
}

func TestEventually_returnsOnceItHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		Eventually(t, time.Hour, func() bool { return time.Since(start) >= time.Second }, "a second passes")
		if took := time.Since(start); took > 1100*time.Millisecond {
			t.Errorf("took %v, want about 1s", took)
		}
	})
}
