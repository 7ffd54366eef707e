// Package testredis is the Redis that tests run on.
//
// A package calls Main once in TestMain, and its tests then ask for what they need:
//
//	func TestMain(m *testing.M) { testredis.Main(m) }
//
//	func TestEnqueue_refusesADuplicate(t *testing.T) {
//		t.Parallel()
//		d, err := onbeat.New(testredis.Client(t), onbeat.Config{Namespace: testredis.Namespace(t)})
//		if err != nil {
//			t.Fatal(err)
//		}
//		for _, want := range []error{nil, task.ErrDuplicate} {
//			if _, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.ID("inv-42")); !errors.Is(err, want) {
//				t.Errorf("got %v, want %v", err, want)
//			}
//		}
//	}
//
// All tests of a package share one Redis. Each test uses its own namespace, so all may run in parallel. The package uses the
// first of these that there is:
//
//  1. the server at the URL in ONBEAT_TEST_REDIS;
//  2. a container, in the packages that set [Containers];
//  3. a redis-server on PATH, as a child process;
//  4. miniredis, inside the test's process.
//
// ONBEAT_TEST_ON restricts 2 to 4 to one: container, child or miniredis. A package without containers ignores the first of
// these words. With ONBEAT_REQUIRE_REAL=1, a test fails that would run on miniredis or be skipped without a real server.
//
// Use [Client] for most tests; [Mini] for fast ones and for testing/synctest; [Each] for what must hold
// on both; [Real] for what miniredis cannot do; [Private] for faults; [Replicated], [Sentinels], [Cluster] and [OnDisk] for
// what a Redis may lose.
package testredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/onbeat/onbeat/internal/embedded"
)

// Main is what a package's TestMain calls. It runs the tests, ends the servers that they started, fails if goroutines are
// left over, and exits. It prints to stderr which Redis the package ran on. If ONBEAT_TEST_REPORT names a file, it adds
// that line to the file, because go test hides the output of passing packages.
//
// The options are for goleak, to ignore goroutines that cannot be ended.
func Main(m *testing.M, opts ...goleak.Option) {
	mainRuns.Store(true)
	redis.SetLogger(silent{})                      // a test that takes a server away expects dials to fail
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a dispatcher without a logger warns there, and tests break things on purpose
	log.SetOutput(os.Stderr)                       // SetDefault took it over
	code := m.Run()

	if used := shared.used(); used != nil {
		report(os.Stderr, used.about)
		if err := used.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "testredis:", err)
			code = cmp.Or(code, 1)
		}
	}
	if code == 0 {
		if err := Leaks(opts...); err != nil {
			fmt.Fprintln(os.Stderr, "testredis: the tests passed, but left goroutines behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Leaks waits until no goroutine is left but those that opts ignore, and names those that stay for 10 s: a closed client of
// go-redis that dialled in vain looks only once a second whether it may end.
func Leaks(opts ...goleak.Option) error {
	for start := time.Now(); ; {
		if err := goleak.Find(opts...); err == nil || time.Since(start) > 10*time.Second {
			return err
		}
	}
}

// silent drops what go-redis would print.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// mainRuns is set when Main is in charge of ending what the tests start.
var mainRuns atomic.Bool

func report(w io.Writer, about string) {
	fmt.Fprintln(w, "testredis:", about)
	path := os.Getenv("ONBEAT_TEST_REPORT")
	if path == "" {
		return
	}
	line := fmt.Sprintf("%-32s %s\n", packageUnderTest(), about)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line) // a single write, so that the lines of packages do not mix
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(w, "testredis: write ONBEAT_TEST_REPORT:", err)
	}
}

func packageUnderTest() string {
	name := filepath.Base(os.Args[0])
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		name = info.Path
	}
	return strings.TrimSuffix(name, ".test")
}

// A server is a Redis that tests share.
type server struct {
	url   string
	about string // redis-server 7.0.15 in a container
	real  bool
	stop  func() error
}

// once starts the shared server when the first test asks for it.
type once struct {
	mu  sync.Mutex
	srv *server
	err error
}

var shared once

// startTimeout bounds the start of a server. A container takes a second; a busy machine takes longer.
const startTimeout = 30 * time.Second

func (o *once) get(t testing.TB) *server {
	t.Helper()
	if !mainRuns.Load() {
		t.Fatal("testredis: nobody would end the Redis that this test asks for; add to the package: func TestMain(m *testing.M) { testredis.Main(m) }")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.srv == nil && o.err == nil {
		o.srv, o.err = choose(context.Background())
	}
	if o.err != nil {
		t.Fatal("testredis:", o.err)
	}
	return o.srv
}

// used returns the shared server, or nil if no test asked for it.
func (o *once) used() *server {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.srv
}

func requireReal() bool { return os.Getenv("ONBEAT_REQUIRE_REAL") == "1" }

// The values of ONBEAT_TEST_ON.
const (
	OnContainer = "container"
	onChild     = "child"
	onMiniredis = "miniredis"
)

// allowed reports whether ONBEAT_TEST_ON permits this kind of server.
func allowed(kind string) bool {
	only := os.Getenv("ONBEAT_TEST_ON")
	return only == "" || only == kind || only == OnContainer && Containers == nil
}

// choose starts the first kind of server that there is.
func choose(ctx context.Context) (*server, error) {
	if url := os.Getenv("ONBEAT_TEST_REDIS"); url != "" {
		return chooseGiven(ctx, url)
	}
	var why []error
	for _, b := range backends() {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		p, err := startOn(ctx, b, nil)
		if err != nil {
			why = append(why, err)
			continue
		}
		name, err := version(ctx, "redis://"+p.Addr()+"/0")
		if err != nil {
			return nil, errors.Join(err, p.Remove(ctx))
		}
		return &server{
			url:   "redis://" + p.Addr() + "/0",
			about: name + " " + b.Where(),
			real:  true,
			stop: func() error {
				ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
				defer cancel()
				return p.Remove(ctx)
			},
		}, nil
	}
	for _, err := range why {
		fmt.Fprintln(os.Stderr, "testredis:", err)
	}
	if requireReal() || !allowed(onMiniredis) {
		return nil, errors.Join(append([]error{errNoReal}, why...)...)
	}
	mini, err := embedded.Start(ctx, embedded.Options{InProcess: true, NoPassword: true}) // the others have none either
	if err != nil {
		return nil, err
	}
	return &server{url: mini.URL(), about: "miniredis in this process", stop: mini.Close}, nil
}

// chooseGiven uses the server that the environment names. If that server does not answer, a test on another one would prove
// the wrong thing.
func chooseGiven(ctx context.Context, url string) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	name, err := version(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("the Redis that ONBEAT_TEST_REDIS names: %w", err)
	}
	return &server{
		url:   url,
		about: name + " at the address in ONBEAT_TEST_REDIS",
		real:  true,
		stop:  func() error { return nil },
	}, nil
}

// errNoReal says how to get a real server.
var errNoReal = errors.New("no real Redis: set ONBEAT_TEST_REDIS, or install redis-server")

// version asks a server for its name and version.
func version(ctx context.Context, url string) (string, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return "", err
	}
	opts.MaxRetries = -1 // a user who set a wrong address wants to learn so soon
	rdb := newClient(opts)
	defer rdb.Close()
	info, err := rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", opts.Addr, err)
	}
	about := info["Server"]
	if v := about["valkey_version"]; v != "" {
		return "valkey " + v, nil
	}
	return "redis-server " + about["redis_version"], nil
}

func newClient(opts *redis.Options) *redis.Client {
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts)
}

// Client returns a client of the shared Redis, closed when the test ends. Other tests use the same server at the same time:
// use only keys under a [Namespace], and never flush.
func Client(t testing.TB) *redis.Client {
	t.Helper()
	return clientOf(t, shared.get(t).url)
}

func clientOf(t testing.TB, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal("testredis:", err)
	}
	rdb := newClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// URL returns where the shared Redis listens, for code that connects by itself, such as a process that the test starts.
func URL(t testing.TB) string {
	t.Helper()
	return shared.get(t).url
}

// Real is like Client, for a test of what miniredis cannot do. If there is only miniredis, it skips the test, or fails it
// if ONBEAT_REQUIRE_REAL=1.
func Real(t testing.TB) *redis.Client {
	t.Helper()
	if !shared.get(t).real {
		withoutReal(t)
	}
	return Client(t)
}

// withoutReal skips or fails a test that needs a real server where there is none.
func withoutReal(t testing.TB, why ...error) {
	t.Helper()
	reason := errors.Join(append([]error{errNoReal}, why...)...)
	if requireReal() {
		t.Fatal("testredis:", reason)
	}
	t.Skip("testredis:", reason)
}

// raced is set in builds with the race detector.
var raced bool

// Each runs the test twice, as subtests named miniredis and redis: once on a miniredis of its own and once on the shared
// real server. Without a real server, the second is skipped, or fails if ONBEAT_REQUIRE_REAL=1. With a real server and the
// race detector, the first is left to a soak (ONBEAT_SOAK=1); the model and the simulation run every script on miniredis
// without it.
func Each(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	if !halved(t) {
		t.Run("miniredis", func(t *testing.T) { test(t, Mini(t).Client) })
	}
	t.Run("redis", func(t *testing.T) { test(t, Real(t)) })
}

// halved reports whether Each leaves out miniredis.
func halved(t testing.TB) bool {
	t.Helper()
	return raced && !Soak() && shared.get(t).real
}
