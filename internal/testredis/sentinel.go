package testredis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/embedded"
)

const (
	sentinelMaster = "beat"  // the name by which sentinels know the primary
	watcher        = "watch" // the user, and the password, of the sentinels on the servers
)

// SentinelGroup is a primary with two replicas, and three sentinels that promote a replica about a second after the primary
// is gone. It belongs to one test.
type SentinelGroup struct {
	Primary  *Server
	Replicas []*Server

	addrs     []string // of the sentinels
	processes []int
}

// Sentinels starts a group and returns when the sentinels agree on all of it. The primary and the replicas get the args.
// Without a redis-server on PATH the test is skipped, or fails if ONBEAT_REQUIRE_REAL=1.
func Sentinels(t testing.TB, args ...string) *SentinelGroup {
	t.Helper()
	needProgram(t)
	args = append([]string{"--user", watcher, "on", ">" + watcher, "~*", "&*", "+@all"}, args...)
	g := &SentinelGroup{Primary: member(t, args...)}
	for range 2 {
		g.Replicas = append(g.Replicas, follower(t, g.Primary, args...))
	}
	for _, r := range g.Replicas {
		awaitReplica(t, r)
	}
	for range 3 {
		addr, process := startSentinel(t, g.Primary.Addr())
		g.addrs, g.processes = append(g.addrs, addr), append(g.processes, process)
	}
	for _, addr := range g.addrs {
		g.awaitAgreed(t, addr)
	}
	return g
}

// URL is where onbeat connects.
func (g *SentinelGroup) URL() string { return sentinelURL(g.addrs...) }

func sentinelURL(addrs ...string) string {
	return "redis-sentinel://" + strings.Join(addrs, ",") + "/" + sentinelMaster + "/0"
}

// Leading returns the address of the primary. It asks a sentinel.
func (g *SentinelGroup) Leading(t testing.TB) string {
	t.Helper()
	return g.names(t, 0)
}

// names returns the address of the primary that one sentinel reports.
func (g *SentinelGroup) names(t testing.TB, sentinel int) string {
	t.Helper()
	s := sentinelClient(g.addrs[sentinel])
	defer s.Close()
	got, err := s.GetMasterAddrByName(t.Context(), sentinelMaster).Result()
	if err != nil || len(got) != 2 {
		t.Fatalf("testredis: ask a sentinel for the primary: %v, %v", got, err)
	}
	return net.JoinHostPort(got[0], got[1])
}

// awaitAgreed waits until a sentinel knows both replicas and both other sentinels: before that, it cannot promote a
// replica.
func (g *SentinelGroup) awaitAgreed(t testing.TB, addr string) {
	t.Helper()
	s := sentinelClient(addr)
	defer s.Close()
	Eventually(t, startTimeout, func() error {
		m, err := s.Master(t.Context(), sentinelMaster).Result()
		if err != nil {
			return err
		}
		if m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" || m["flags"] != "master" {
			return fmt.Errorf("%s replicas, %s other sentinels, %s", m["num-slaves"], m["num-other-sentinels"], m["flags"])
		}
		return nil
	}, "the sentinel at %s knows the group", addr)
}

func sentinelClient(addr string) *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: addr})
}

// startSentinel starts a sentinel, which ends with the test.
func startSentinel(t testing.TB, primary string) (addr string, process int) {
	t.Helper()
	host, port, err := net.SplitHostPort(primary)
	must(t, err)
	own, err := embedded.FreePort()
	must(t, err)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 2\n", own, filepath.Dir(conf), sentinelMaster, host, port)
	for _, setting := range []string{
		"down-after-milliseconds %s 1000", "failover-timeout %s 5000", "parallel-syncs %s 2",
		"auth-user %s " + watcher, "auth-pass %s " + watcher,
	} {
		text += "sentinel " + fmt.Sprintf(setting, sentinelMaster) + "\n"
	}
	must(t, os.WriteFile(conf, []byte(text), 0o600))
	cmd := exec.Command("redis-server", conf, "--sentinel")
	must(t, runUntilCleanup(t, cmd))
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(own))
	s := sentinelClient(addr)
	defer s.Close()
	Eventually(t, startTimeout, func() error { return s.Ping(t.Context()).Err() }, "the sentinel at %s answers", addr)
	return addr, cmd.Process.Pid
}

// runUntilCleanup starts a process that is killed when the test ends, or together with this process. It keeps the thread
// that started the process, because the kernel takes that thread for the parent.
func runUntilCleanup(t testing.TB, cmd *exec.Cmd) error {
	t.Helper()
	cmd.SysProcAttr = dieWithParent()
	started, gone := make(chan error), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-gone
	})
	return nil
}

// Led returns the member that the sentinels report as the primary.
func (g *SentinelGroup) Led(t testing.TB) *Server {
	t.Helper()
	addr := g.Leading(t)
	for _, m := range append([]*Server{g.Primary}, g.Replicas...) {
		if m.Addr() == addr {
			return m
		}
	}
	t.Fatalf("testredis: the sentinels name %s, which is no member of the group", addr)
	return nil
}

// Failover makes the sentinels promote a replica, as for maintenance, and returns when they report the new primary. The old
// primary learns later that it was deposed: see [SentinelGroup.AwaitWhole].
func (g *SentinelGroup) Failover(t testing.TB) {
	t.Helper()
	old := g.Leading(t)
	s := sentinelClient(g.addrs[0])
	defer s.Close()
	var asked time.Time
	var refused error
	Eventually(t, 4*startTimeout, func() error { // a failover may fail
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			refused = s.Failover(t.Context(), sentinelMaster).Err() // one is under way, or no replica is good enough yet
		}
		if g.Leading(t) == old {
			return fmt.Errorf("%s is still the primary; SENTINEL FAILOVER: %v", old, refused)
		}
		return nil
	}, "a replica is promoted")
}

// AwaitWhole waits until one member is the primary, the others follow it, and all sentinels report so.
func (g *SentinelGroup) AwaitWhole(t testing.TB) {
	t.Helper()
	for _, addr := range g.addrs {
		s := sentinelClient(addr)
		Eventually(t, 2*startTimeout, func() error {
			led := g.Led(t)
			rdb := newClient(&redis.Options{Addr: led.Addr()}) // a Server's own clients stay open until the test ends
			defer rdb.Close()
			info := rdb.Info(t.Context(), "replication").Val()
			names, err := s.GetMasterAddrByName(t.Context(), sentinelMaster).Result()
			switch {
			case err != nil || net.JoinHostPort(names[0], names[1]) != led.Addr():
				return fmt.Errorf("it names %v, %v", names, err)
			case !strings.Contains(info, "connected_slaves:2") || strings.Count(info, "state=online") != 2:
				return fmt.Errorf("the primary says %s", info)
			}
			m, err := s.Master(t.Context(), sentinelMaster).Result()
			if err != nil || m["flags"] != "master" {
				return fmt.Errorf("its state is %s, %v", m["flags"], err)
			}
			return nil
		}, "the group is whole, by the sentinel at %s", addr)
		_ = s.Close()
	}
}
