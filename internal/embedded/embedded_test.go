package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/onbeat/onbeat/internal/embedded"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("EMBEDDED_TEST_PARENT"); dir != "" {
		beParent(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// needServer skips the test if there is no redis-server, unless one is required.
func needServer(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	if err == nil {
		return
	}
	if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
		t.Fatal("ONBEAT_REQUIRE_REAL=1, and there is no redis-server on PATH")
	}
	t.Skip("no redis-server on PATH")
}

func start(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func client(t *testing.T, s *embedded.Server) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func within(t *testing.T, limit time.Duration, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s: not within %v", what, limit)
	}
}

func TestStart_inProcessServesAndSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{InProcess: true})
	rdb := client(t, s)

	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if s.Kind() != embedded.InProcess {
		t.Errorf("Kind = %q, want %q", s.Kind(), embedded.InProcess)
	}
	if want := "in-process Redis (miniredis; data is lost at exit)"; s.String() != want {
		t.Errorf("String = %q, want %q", s, want)
	}
	if s.PID() != os.Getpid() {
		t.Errorf("PID = %d, want our own, %d", s.PID(), os.Getpid())
	}
}

func TestStart_inProcessKeysExpireByThemselves(t *testing.T) {
	t.Parallel()
	rdb := client(t, start(t, embedded.Options{InProcess: true}))
	if err := rdb.Set(t.Context(), "k", "v", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		n, err := rdb.Exists(t.Context(), "k").Result()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a key with a time to live of 20ms still exists after 10s")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStart_withoutServerOnPathFallsBack(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if s := start(t, embedded.Options{}); s.Kind() != embedded.InProcess {
		t.Errorf("Kind = %q, want %q", s.Kind(), embedded.InProcess)
	}
}

func TestStart_childServesWithTheSettingsPromised(t *testing.T) {
	needServer(t)
	t.Parallel()
	s := start(t, embedded.Options{})
	if s.Kind() != embedded.Child {
		t.Fatalf("Kind = %q, want %q", s.Kind(), embedded.Child)
	}
	if !strings.HasSuffix(s.String(), "(child process; data is lost at exit)") {
		t.Errorf("String = %q", s)
	}
	wantConfig(t, s, map[string]string{
		"bind": "127.0.0.1", "protected-mode": "yes", "appendonly": "no", "save": "", "maxmemory-policy": "noeviction",
	})
}

func TestStart_childWithDirAppendsToFile(t *testing.T) {
	needServer(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	s := start(t, embedded.Options{Dir: dir})
	if want := "(child process, data in " + dir + "/)"; !strings.HasSuffix(s.String(), want) {
		t.Errorf("String = %q, want it to end with %q", s, want)
	}
	wantConfig(t, s, map[string]string{"appendonly": "yes", "appendfsync": "everysec", "dir": dir, "save": ""})
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the data directory = %v, want 0700", info.Mode().Perm())
	}
}

func wantConfig(t *testing.T, s *embedded.Server, want map[string]string) {
	t.Helper()
	rdb := client(t, s)
	for name, value := range want {
		got, err := rdb.ConfigGet(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
}

func TestStart_argsWinOverOurOwn(t *testing.T) {
	needServer(t)
	t.Parallel()
	s := start(t, embedded.Options{Args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}})
	wantConfig(t, s, map[string]string{"maxmemory": "104857600", "maxmemory-policy": "allkeys-lru"})
}

func TestStart_dataOutlivesTheServer(t *testing.T) {
	needServer(t)
	t.Parallel()
	dir := t.TempDir()
	first, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := client(t, first).Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, embedded.Options{Dir: dir})
	if got, err := client(t, second).Get(t.Context(), "kept").Result(); got != "yes" || err != nil {
		t.Errorf("after a restart, kept = %q, %v; want yes", got, err)
	}
}

func TestStart_refusesADirectoryInUse(t *testing.T) {
	needServer(t)
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.Options{Dir: dir})
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrInUse) {
		t.Fatalf("second Start = %v, want ErrInUse", err)
	}
	for _, want := range []string{dir, fmt.Sprint(os.Getpid()), fmt.Sprint(s.PID())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not name %s", err, want)
		}
	}
	if err := client(t, s).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the first server, after the second was refused: %v", err)
	}
}

func TestStart_ignoresAStaleLockFile(t *testing.T) {
	needServer(t)
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "onbeat-redis.lock"), []byte("1 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, embedded.Options{Dir: dir})
}

func TestStart_refusesAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	for _, inProcess := range []bool{true, false} {
		_, err := embedded.Start(t.Context(), embedded.Options{Port: port, InProcess: inProcess})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(port)) {
			t.Errorf("InProcess=%v: err = %v, want one that names port %d", inProcess, err, port)
		}
	}
}

func TestStart_saysWhyTheChildDidNotStart(t *testing.T) {
	needServer(t)
	t.Parallel()
	_, err := embedded.Start(t.Context(), embedded.Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("err = %v, want what redis-server printed", err)
	}
}

func TestStart_givesUpWithItsContext(t *testing.T) {
	needServer(t)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embedded.Start(ctx, embedded.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestClose_endsTheServerAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	for _, inProcess := range []bool{true, false} {
		s, err := embedded.Start(t.Context(), embedded.Options{InProcess: inProcess})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("%s: Close = %v", s.Kind(), err)
			}
		}
		within(t, 10*time.Second, "Done after Close", s.Done())
		if s.Err() != nil {
			t.Errorf("%s: Err after Close = %v, want nil", s.Kind(), s.Err())
		}
		// Another test may listen on the port by now, so only the old connection tells.
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a connection outlives Close: %v", s.Kind(), err)
		}
	}
}

func TestDone_tellsOfADeathNobodyAskedFor(t *testing.T) {
	needServer(t)
	t.Parallel()
	s := start(t, embedded.Options{})
	if s.Err() != nil {
		t.Errorf("Err while it runs = %v, want nil", s.Err())
	}
	p, err := os.FindProcess(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "Done after the child was killed", s.Done())
	if !errors.Is(s.Err(), embedded.ErrDied) || !strings.Contains(s.Err().Error(), "killed") {
		t.Errorf("Err = %v, want ErrDied with its cause", s.Err())
	}
}

// beParent is the program that TestStart_childDiesWithItsParent kills.
func beParent(dir string) {
	s, err := embedded.Start(context.Background(), embedded.Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("started", s.PID(), s.Addr())
	<-s.Done()
}

func TestStart_childDiesWithItsParent(t *testing.T) {
	needServer(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child whose parent was killed")
	}
	t.Parallel()
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "EMBEDDED_TEST_PARENT="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var word, addr string
	var pid int
	if _, err := fmt.Fscan(out, &word, &pid, &addr); err != nil || word != "started" {
		_ = parent.Process.Kill()
		_ = parent.Wait()
		t.Fatalf("the parent said %q, %v", word, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the child still answers 10s after its parent was killed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	start(t, embedded.Options{Dir: dir}) // the lock went with them
}

func TestFreePort_isFreeAndNotEphemeral(t *testing.T) {
	t.Parallel()
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < 15_000 || port >= 32_000 {
		t.Errorf("port = %d, want one below the range of outgoing connections", port)
	}
}
