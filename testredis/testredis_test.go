package testredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

func TestClient_sharesOneServer(t *testing.T) {
	t.Parallel()
	ns := Namespace(t)
	if err := Client(t).Set(t.Context(), ns, "seen", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := Client(t).Get(t.Context(), ns).Result(); got != "seen" || err != nil {
		t.Errorf("through another client: %q, %v; want seen", got, err)
	}
	opts, err := redis.ParseURL(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	if got, err := rdb.Get(t.Context(), ns).Result(); got != "seen" || err != nil {
		t.Errorf("through URL: %q, %v; want seen", got, err)
	}
}

func TestReal_isNotMiniredis(t *testing.T) {
	t.Parallel()
	info, err := Real(t).InfoMap(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if info["Server"]["run_id"] == "" {
		t.Errorf("INFO server = %v, want a run_id", info)
	}
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
	if !shared.used().real {
		want = "miniredis"
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("ran on %q, want %q", got, want)
	}
}

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

// eachBackend runs a story on every way to run a Redis that this machine has.
func eachBackend(t *testing.T, story func(t *testing.T, start func(args ...string) *Server)) {
	t.Helper()
	all := backends()
	if len(all) == 0 {
		withoutReal(t)
	}
	for _, b := range all {
		t.Run(fmt.Sprintf("%T", b), func(t *testing.T) {
			t.Parallel()
			story(t, func(args ...string) *Server {
				t.Helper()
				if _, ok := b.(children); ok {
					args = append([]string{"--dir", t.TempDir()}, args...)
				}
				s, err := privateOn(t, b, args)
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func noRetry(o *redis.Options) { o.MaxRetries = -1 }

func TestPrivate_keepsPortAndFileOverKill(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, start func(...string) *Server) {
		s := start("--appendonly", "yes")
		rdb := s.Client(noRetry)
		for i, end := range []func(){s.Kill, s.Stop, func() {}} {
			if err := rdb.Set(t.Context(), fmt.Sprint(i), "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			before := s.Addr()
			end()
			if i < 2 {
				if err := rdb.Ping(t.Context()).Err(); err == nil {
					t.Error("it answers although it was ended")
				}
			}
			s.Restart()
			if s.Addr() != before {
				t.Errorf("address after Restart = %s, was %s", s.Addr(), before)
			}
			fresh := s.Client()
			if got, err := fresh.Get(t.Context(), fmt.Sprint(i)).Result(); got != "kept" || err != nil {
				t.Errorf("after restart %d: %q, %v; want kept", i, got, err)
			}
		}
	})
}

func TestPrivate_withoutFileLosesItsData(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, start func(...string) *Server) {
		s := start()
		if err := s.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		if n, err := s.Client().Exists(t.Context(), "k").Result(); n != 0 || err != nil {
			t.Errorf("after Restart, Exists = %d, %v; want 0", n, err)
		}
	})
}

func TestPrivate_pausedItAnswersNothing(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, start func(...string) *Server) {
		s := start()
		rdb := s.Client(noRetry)
		if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		hasty := s.Client(noRetry, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
		s.Pause()
		if err := hasty.Get(t.Context(), "k").Err(); err == nil {
			t.Error("a paused server answered")
		}
		s.Resume()
		Eventually(t, 20*time.Second, func() error { return rdb.Get(t.Context(), "k").Err() }, "an answer after Resume")
	})
}

func TestPrivate_pausedItCanBeRemovedAndKilled(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, start func(...string) *Server) {
		start().Pause() // and is removed so
		s := start()
		s.Pause()
		s.Kill()
		s.Restart()
		if err := s.Client().Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestPrivate_isTheTestsOwn(t *testing.T) {
	t.Parallel()
	a, b := Private(t), Private(t)
	if a.Addr() == b.Addr() {
		t.Errorf("two servers at %s", a.Addr())
	}
	if !strings.Contains(a.String(), "redis-server") {
		t.Errorf("String = %q, want its name", a)
	}
}

func TestMini_worksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Mini(t)
		if err := m.Client.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		before, err := m.Client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Minute)
		after, err := m.Client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := after.Sub(before); got != 61*time.Minute {
			t.Errorf("TIME moved by %v, want 61m", got)
		}
		if n, err := m.Client.Exists(t.Context(), "k").Result(); n != 0 || err != nil {
			t.Errorf("the key outlived its hour: %d, %v", n, err)
		}
	})
}

func TestMini_wakesSubscribersInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Mini(t)
		sub := m.Client.Subscribe(t.Context(), "wake")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			m.Dialed(t).Publish(t.Context(), "wake", "now")
		}()
		start := time.Now()
		msg, err := sub.ReceiveMessage(t.Context())
		if err != nil || msg.Payload != "now" || time.Since(start) != time.Minute {
			t.Errorf("message %v, %v after %v; want now after 1m", msg, err, time.Since(start))
		}
	})
}

func TestMini_setTimeMovesTimeAndExpiry(t *testing.T) {
	t.Parallel()
	m := Mini(t)
	at := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	m.SetTime(at)
	if got, err := m.Client.Time(t.Context()).Result(); !got.Equal(at) || err != nil {
		t.Errorf("TIME = %v, %v; want %v", got, err, at)
	}
	if err := m.Client.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	m.SetTime(at.Add(2 * time.Hour))
	if n, err := m.Client.Exists(t.Context(), "k").Result(); n != 0 || err != nil {
		t.Errorf("after two hours: %d, %v; want the key gone", n, err)
	}
}

// A pipe holds nothing: without a buffer, client and server wait for each other.
func TestMini_takesALongPipeline(t *testing.T) {
	t.Parallel()
	rdb := Mini(t).Client
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	value := strings.Repeat("x", 4096)
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 500 {
			p.Set(ctx, fmt.Sprint(i), value, 0)
			p.Get(ctx, fmt.Sprint(i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
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

func TestReport_addsALineToTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	t.Setenv("ONBEAT_TEST_REPORT", path)
	var out strings.Builder
	report(&out, "redis-server 7.0.15 in a container")
	report(&out, "redis-server 7.0.15 in a container")
	if want := "testredis: redis-server 7.0.15 in a container\n"; out.String() != want+want {
		t.Errorf("printed %q", out.String())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 2 || !strings.Contains(string(text), "testredis") {
		t.Errorf("the file holds %q, want two lines that name the package", text)
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

// A test binary that is killed leaves its container; the next one removes it.
func TestSweep_removesContainersOfDeadTests(t *testing.T) {
	e := docker.get()
	if e == nil {
		t.Skip("no Docker engine with the image")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	p, err := startOn(ctx, ownedBy{e, dead.Process.Pid}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := startOn(ctx, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.remove(context.Background())
	e.sweep()
	if up, err := p.(*box).running(ctx); err == nil {
		t.Errorf("the container of a dead test still exists (running: %v)", up)
		_ = p.remove(context.Background())
	}
	if up, err := mine.(*box).running(ctx); !up || err != nil {
		t.Errorf("our own container: running %v, %v; want it left alone", up, err)
	}
}

// ownedBy starts containers in the name of another process.
type ownedBy struct {
	*engine
	pid int
}

func (o ownedBy) start(ctx context.Context, port int, args []string) (process, error) {
	return o.run(ctx, port, args, o.pid)
}
