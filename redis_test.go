package onbeat_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/embedded"
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
		rdb, err := onbeat.Dial(c.url)
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
	rdb, err := onbeat.Dial("rediss-cluster://u:p@a:1,b:2,c?max_redirects=5")
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
		rdb, err := onbeat.Dial(url)
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
	} {
		rdb, err := onbeat.Dial(url)
		if err == nil {
			_ = rdb.Close()
			t.Errorf("%q was accepted", url)
			continue
		}
		var field *task.FieldError
		if !errors.As(err, &field) || field.Field != "redis.url" || field.Hint == "" {
			t.Errorf("%q: %#v is not a refusal of redis.url with a hint", url, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the password is shown: %v", url, err)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://h:1/2":        "redis://h:1/2",
		"redis://u:p@h:1/2":    "redis://u:…@h:1/2",
		"redis://:p@h":         "redis://:…@h",
		"redis://u:p@q@h":      "redis://u:…@h",
		"redis://u:p/q?@h?x=1": "redis://u:…@h?x=1",
		"redis://u@h":          "redis://u@h",
		"redis-sentinel://h/m?sentinel_password=p&x=1": "redis-sentinel://h/m?sentinel_password=…&x=1",
		"u:p@h": "…@h",
		"h:1":   "h:1",
	} {
		if got := onbeat.Redacted(url); got != want {
			t.Errorf("Redacted(%q) = %q, want %q", url, got, want)
		}
	}
}

func TestDial_doesNotWaitLongForNobody(t *testing.T) {
	t.Parallel()
	rdb, err := onbeat.Dial("redis://127.0.0.1:1")
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

// Whoever tried in vain many times is connected as soon as there is somebody.
func TestDial_connectsAsSoonAsRedisIsBack(t *testing.T) {
	t.Parallel()
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	rdb, err := onbeat.Dial("redis://" + addr + "?pool_size=2&max_retries=-1")
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
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the first call after Redis came back: %v", err)
	}
}
