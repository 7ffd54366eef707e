package testredis

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { Main(m) }

// note records what a test did, so that a test can be about a failing one.
type note struct {
	testing.TB
	mu      sync.Mutex
	failed  string
	skipped string
}

func (n *note) Helper() {}

func (n *note) Fatal(args ...any) { n.fail(fmt.Sprintln(args...)) }

func (n *note) Fatalf(format string, args ...any) { n.fail(fmt.Sprintf(format, args...)) }

func (n *note) fail(text string) {
	n.mu.Lock()
	n.failed = text
	n.mu.Unlock()
	runtime.Goexit()
}

func (n *note) Skip(args ...any) {
	n.mu.Lock()
	n.skipped = fmt.Sprintln(args...)
	n.mu.Unlock()
	runtime.Goexit()
}

// outcome runs a test to its end, whichever way that is.
func outcome(t *testing.T, test func(t testing.TB)) *note {
	t.Helper()
	n := &note{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(n)
	}()
	<-done
	return n
}

func TestWithoutReal_skipsUnlessOneIsRequired(t *testing.T) {
	t.Setenv("ONBEAT_REQUIRE_REAL", "")
	if n := outcome(t, func(t testing.TB) { withoutReal(t) }); n.skipped == "" || n.failed != "" {
		t.Errorf("skipped %q, failed %q; want it skipped with a reason", n.skipped, n.failed)
	}
	t.Setenv("ONBEAT_REQUIRE_REAL", "1")
	if n := outcome(t, func(t testing.TB) { withoutReal(t) }); n.failed == "" || n.skipped != "" {
		t.Errorf("with ONBEAT_REQUIRE_REAL=1: skipped %q, failed %q; want it failed", n.skipped, n.failed)
	}
}

func TestChoose_refusesMiniredisWhereARealOneIsRequired(t *testing.T) {
	t.Setenv("ONBEAT_TEST_REDIS", "")
	t.Setenv("ONBEAT_TEST_ON", onMiniredis)
	t.Setenv("ONBEAT_REQUIRE_REAL", "1")
	if srv, err := choose(t.Context()); !errors.Is(err, errNoReal) {
		t.Errorf("choose = %v, %v; want errNoReal", srv, err)
	}
	t.Setenv("ONBEAT_REQUIRE_REAL", "")
	srv, err := choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.stop()
	if srv.real || srv.about != "miniredis in this process" {
		t.Errorf("choose = %+v, want miniredis", srv)
	}
}

func TestChoose_usesTheGivenServerOrNone(t *testing.T) {
	given := URL(t)
	t.Setenv("ONBEAT_TEST_REDIS", given)
	srv, err := choose(t.Context())
	if shared.used().real {
		if err != nil || srv.url != given {
			t.Errorf("choose = %+v, %v; want %s", srv, err, given)
		}
	}
	t.Setenv("ONBEAT_TEST_REDIS", "redis://127.0.0.1:1/0")
	if srv, err := choose(t.Context()); err == nil || !strings.Contains(err.Error(), "ONBEAT_TEST_REDIS") {
		t.Errorf("choose with a server that is not there = %+v, %v; want an error", srv, err)
	}
}

func TestEach_runsOnBoth(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var names []string
	t.Run("each", func(t *testing.T) {
		Each(t, func(t *testing.T, rdb *redis.Client) {
			if err := rdb.Set(t.Context(), Namespace(t), 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			names = append(names, filepath.Base(t.Name()))
		})
	})
	want := "miniredis redis"
	switch {
	case !shared.used().real:
		want = "miniredis"
	case halved(t):
		want = "redis"
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("ran on %q, want %q", got, want)
	}
}

func TestGet_refusesAPackageWithoutMain(t *testing.T) {
	mainRuns.Store(false)
	defer mainRuns.Store(true)
	n := outcome(t, func(t testing.TB) { (&once{}).get(t) })
	if !strings.Contains(n.failed, "testredis.Main(m)") {
		t.Errorf("failed with %q, want the line to add", n.failed)
	}
}
