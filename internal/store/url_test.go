package store_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestDial_understandsEachScheme(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, addr, user, password string
		db                        int
		tls                       bool
	}{
		{"redis://", "127.0.0.1:6379", "", "", 0, false},
		{"redis://h", "h:6379", "", "", 0, false},
		{"redis://[::1]:7/3", "[::1]:7", "", "", 3, false},
		{"redis://u:p%40ss@h:7/2?pool_size=7", "h:7", "u", "p@ss", 2, false},
		{"redis://:secret@h", "h:6379", "", "secret", 0, false},
		{"rediss://h:7/1", "h:7", "", "", 1, true},
	} {
		rdb, err := store.Dial(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		one, ok := rdb.(*redis.Client)
		if !ok {
			t.Fatalf("%s: %T", c.url, rdb)
		}
		o := one.Options()
		if o.Addr != c.addr || o.Username != c.user || o.Password != c.password || o.DB != c.db || (o.TLSConfig != nil) != c.tls {
			t.Errorf("%s: addr %s user %q password %q db %d tls %v", c.url, o.Addr, o.Username, o.Password, o.DB, o.TLSConfig != nil)
		}
		if o.ClientName != "onbeat" || !o.ContextTimeoutEnabled {
			t.Errorf("%s: client name %q, heeds contexts %v", c.url, o.ClientName, o.ContextTimeoutEnabled)
		}
		_ = rdb.Close()
	}
}

func TestDial_takesSeveralHosts(t *testing.T) {
	t.Parallel()
	rdb, err := store.Dial("rediss-cluster://u:p@a:1,b:2,c?max_redirects=5")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		t.Fatalf("%T is no cluster client", rdb)
	}
	o := cluster.Options()
	if got := strings.Join(o.Addrs, " "); got != "a:1 b:2 c:6379" || o.Username != "u" || o.Password != "p" || o.TLSConfig == nil || o.MaxRedirects != 5 {
		t.Errorf("addrs %q, user %q, password %q, tls %v, redirects %d", got, o.Username, o.Password, o.TLSConfig != nil, o.MaxRedirects)
	}
	for _, url := range []string{"redis-sentinel://u:p@a,b:2/mymaster/3?sentinel_password=s", "redis-sentinel://a/?master_name=m"} {
		rdb, err := store.Dial(url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		_ = rdb.Close()
	}
}

func TestDial_refusesWhatItCannotUse_andKeepsThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "127.0.0.1:6379", "user:hunter2@host", "http://x:hunter2@h", "redis-", "redis-magic://h", "unix:///tmp/x",
		"redis://h:port", "redis://h:99999", "redis://h:0", "redis://a,b", "redis://h/x", "redis://h/1/2", "redis://h/-1",
		"redis://u:hunter2@h?nonsense=1", "redis://u:hunter2@h?pool_size=x", "redis://u:hunter2 %zz@h", "redis://u:hunter2/x@h",
		"redis-sentinel://u:hunter2@h", "redis-sentinel://h/m/x", "redis-cluster://h/3", "redis://h:1:2", "redis://u:hunter2?@h",
		"redis://:42/hunter2+x@h", "redis-sentinel://user:42/hunter2@h", "redis-sentinel://user:42/m/hunter2@h", "redis://:42#hunter2@h",
		"redis://:42?hunter2@h", "redis-cluster://u:42/hunter2@h", "redis://h?pool_size=-1", "redis-sentinel://h/m?pool_size=-1",
		"redis-cluster://h?pool_size=-1", "redis://h?pool_size=99999999999", "redis://h?min_idle_conns=-1", "redis://h?max_active_conns=99999999999",
		"redis://:42?hunter2=x@h", "redis://h?sentinel_password=a?b&hunter2=", "redis-sentinel://h/m?sentinel_password=a&hunter2=", "redis-sentinel://h/m/0/hunter2",
		"redis-sentinel://h/m/-1", "redis-sentinel://h/m?db=-3", "redis://h?db=-3",
	} {
		rdb, err := store.Dial(url)
		if err == nil {
			_ = rdb.Close()
			t.Errorf("%q was accepted", url)
			continue
		}
		var field *task.FieldError
		if !errors.As(err, &field) || field.Field != "url" || field.Hint == "" {
			t.Errorf("%q: %#v is not a refusal of url with a hint", url, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the password is shown: %v", url, err)
		}
	}
}

func TestDial_doesNotWaitLongForNobody(t *testing.T) {
	t.Parallel()
	rdb, err := store.Dial("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	ctx, done := context.WithCancel(t.Context())
	defer done()
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Error("somebody answered on port 1")
	}
}

// A client that tried in vain many times is connected as soon as Redis is back, however many dials have failed.
func TestDial_connectsAsSoonAsRedisIsBack(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"lean": "pool_size=2", "idle connections": "pool_size=9&min_idle_conns=9"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := nobody(t)
			rdb, err := store.Dial("redis://" + addr + "?max_retries=-1&" + more)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rdb.Close() }()
			for range 20 {
				if err := rdb.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Fatalf("with nobody there: %v, want that the connection was refused", err)
				}
			}
			srv := miniredis.NewMiniRedis()
			if err := srv.StartAddr(addr); err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			for i := range 20 {
				if err := rdb.Ping(t.Context()).Err(); err != nil {
					t.Errorf("call %d after Redis came back: %v", i, err)
				}
			}
		})
	}
}

// A connection that was dialled for a caller that gave up does not fail a later call.
func TestDial_leavesNoDeadConnectionsBehind(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	rdb, err := store.Dial("redis://" + srv.Addr() + "?max_retries=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	away := &awayDials{}
	away.Store(true)
	rdb.AddHook(away)
	for range 5 {
		ctx, done := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := rdb.Ping(ctx).Err(); err == nil {
			t.Fatal("somebody answered")
		}
		done()
	}
	away.Store(false)
	testredis.Eventually(t, 30*time.Second, func() bool { return away.failed.Load() == 5 }, "the dials end")
	time.Sleep(50 * time.Millisecond) // the pool takes them in
	for i := range 10 {
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("call %d after Redis came back: %v", i, err)
		}
	}
}

// awayDials is a hook: while it is set, a dial fails after a time, also if its caller has given up.
type awayDials struct {
	atomic.Bool
	failed atomic.Int64
}

func (a *awayDials) DialHook(dial redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !a.Load() {
			return dial(ctx, network, addr)
		}
		time.Sleep(100 * time.Millisecond)
		defer a.failed.Add(1)
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
	}
}

func (*awayDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (*awayDials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The same if it was the sentinels that were away.
func TestDial_asksSentinelsAsSoonAsTheyAreBack(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	rdb, err := store.Dial("redis-sentinel://" + addr + "/main?pool_size=2&max_retries=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	for range 20 {
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Fatal("somebody answered")
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	asked := make(chan time.Time, 1)
	go func() {
		if conn, err := ln.Accept(); err == nil {
			asked <- time.Now()
			_ = conn.Close()
		}
	}()
	back := time.Now()
	_ = rdb.Ping(t.Context()).Err() // it is asked, and hangs up
	select {
	case at := <-asked:
		if took := at.Sub(back); took > 700*time.Millisecond {
			t.Errorf("it was asked after %v", took)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is not asked")
	}
}

// nobody returns an address where no process listens, and one can.
func nobody(t *testing.T) string {
	t.Helper()
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
