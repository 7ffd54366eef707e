package main

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
)

// asynqShell is a shell on a Redis of its own: the keys of asynq have no namespace.
func asynqShell(t *testing.T) *shell {
	t.Helper()
	server := testredis.Private(t)
	return &shell{T: t, ns: testredis.Namespace(t), url: server.URL(), rdb: server.Client()}
}

// inAsynq has a task wait in asynq, as its client leaves it.
func (s *shell) inAsynq(queue, id, typ, payload string) {
	s.Helper()
	var msg []byte
	for i, text := range []string{typ, payload, id, queue} {
		msg = protowire.AppendString(protowire.AppendTag(msg, protowire.Number(i+1), protowire.BytesType), text)
	}
	pipe, key := s.rdb.Pipeline(), "asynq:{"+queue+"}:"
	pipe.SAdd(s.Context(), "asynq:queues", queue)
	pipe.HSet(s.Context(), key+"t:"+id, "msg", msg, "state", "pending")
	pipe.LPush(s.Context(), key+"pending", id)
	if _, err := pipe.Exec(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// parted checks that after a move asynq has the tasks that stay in a queue, in their order, that the command has named each, and that
// onbeat has the others.
func (s *shell) parted(r ran, queue string, stay, moved []string) {
	s.Helper()
	pending := s.rdb.LRange(s.Context(), "asynq:{"+queue+"}:pending", 0, -1).Val()
	if slices.Reverse(pending); !slices.Equal(pending, stay) {
		s.Errorf("asynq has %v in queue %s, want %v: %s", pending, queue, stay, r.err)
	}
	for _, id := range stay {
		if !strings.Contains(r.err, id+" of queue "+queue) {
			s.Errorf("%s of queue %s is not named: %s", id, queue, r.err)
		}
	}
	for _, id := range moved {
		s.must("tasks", "show", "asynq:"+queue+":"+id)
	}
}

// taken is how many pending tasks were taken from asynq.
func (s *shell) taken() int {
	m := regexp.MustCompile(`cmdstat_lrem:calls=(\d+)`).FindStringSubmatch(s.rdb.Info(s.Context(), "commandstats").Val())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// A task of a type with a limit may lie apart from the other tasks of the type. It is named before it is taken, and stops no other task.
func TestImportAsynq_leavesWhatLiesApart(t *testing.T) {
	t.Parallel()
	s := asynqShell(t)
	file := s.file("six.yaml", "partitions: 6\nlimits: {report: 1}\n")
	where := split.Map{Partitions: 6}
	var apart, together []string
	for i := range 40 {
		id := fmt.Sprint("r", i)
		s.inAsynq("default", id, "report", "{}")
		if where.Of("asynq:default:"+id) == where.Of("report") {
			together = append(together, id)
		} else {
			apart = append(apart, id)
		}
	}
	s.inAsynq("later", "m", "mail", "{}")
	if len(apart) == 0 || len(together) == 0 {
		t.Fatalf("%d tasks lie apart, %d together", len(apart), len(together))
	}
	r := s.run("", "import", "asynq", "-c", file, "--apply", "--move")
	s.parted(r, "default", apart, together)
	s.parted(r, "later", []string{}, []string{"m"})
	if n := s.taken(); r.code != exitFailed || n != len(together)+1 {
		t.Errorf("exit %d, %d were taken", r.code, n)
	}
}

// A task whose payload a handler of the program refuses, or whose ID looks like that of a slot, is named before it is taken.
func TestImportAsynq_leavesWhatEnqueueRefuses(t *testing.T) {
	t.Parallel()
	s := asynqShell(t)
	for _, queue := range []string{"default", "later"} {
		s.inAsynq(queue, "a", "mail", "{}")
		s.inAsynq(queue, "b", "http", `{"method":"GET"}`)
		s.inAsynq(queue, "c@1", "mail", "{}")
		s.inAsynq(queue, "d", "echo", "{}")
	}
	r := s.run("", "import", "asynq", "--apply", "--move")
	for _, queue := range []string{"default", "later"} {
		s.parted(r, queue, []string{"b", "c@1"}, []string{"a", "d"})
	}
	if n := s.taken(); r.code != exitFailed || n != 4 {
		t.Errorf("exit %d, %d were taken", r.code, n)
	}
}

// What only an API knows is refused when tasks are taken already: those go back, and stop neither the rest of their batch nor other queues. One
// that was held before stays held until the API takes it.
func TestImportAsynq_givesBackWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	s := asynqShell(t)
	var types atomic.Pointer[[]string]
	types.Store(&[]string{"mail"})
	d, err := onbeat.New(s.rdb, onbeat.Config{Namespace: s.ns})
	if err != nil {
		t.Fatal(err)
	}
	url := servedTo(t, d, func() []string { return *types.Load() })
	for _, queue := range []string{"default", "later"} {
		s.inAsynq(queue, "a", "mail", "{}")
		s.inAsynq(queue, "b", "report", "{}")
		s.inAsynq(queue, "c", "mail", `"`+strings.Repeat("x", 1<<20)+`"`)
		s.inAsynq(queue, "d", "bill", "{}")
		s.inAsynq(queue, "e", "mail", "{}")
	}
	const held = "asynq:{later}:onbeat"
	s.inAsynq("later", "h", "report", "{}")
	s.rdb.LRem(t.Context(), "asynq:{later}:pending", 1, "h")
	s.rdb.ZAdd(t.Context(), held, redis.Z{Member: "h"})

	move := func() ran {
		env := testEnv("ONBEAT_API", url, "ONBEAT_TOKEN", apiToken)
		return runWith(t.Context(), env, "", "import", "asynq", "--from", s.url, "--apply", "--move")
	}
	r := move()
	for _, queue := range []string{"default", "later"} {
		s.parted(r, queue, []string{"b", "c", "d"}, []string{"a", "e"})
	}
	if got := s.rdb.ZRange(t.Context(), held, 0, -1).Val(); r.code != exitFailed || !slices.Equal(got, []string{"h"}) || !strings.Contains(r.err, "h of queue later") {
		t.Errorf("exit %d: held are %v: %s", r.code, got, r.err)
	}
	if s.rdb.Exists(t.Context(), "asynq:{default}:onbeat").Val() != 0 {
		t.Error("some are held that were not before")
	}
	types.Store(&[]string{})
	r = move()
	s.parted(r, "default", []string{"c"}, []string{"a", "b", "d", "e"})
	s.parted(r, "later", []string{"c"}, []string{"a", "b", "d", "e", "h"})
	if r.code != exitFailed || s.rdb.Exists(t.Context(), held).Val() != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// The way to the Redis of onbeat is that of every other command: with the CA that the config names, and not without TLS beside it.
func TestImportAsynq_usesTheTLSFilesOfTheConfig(t *testing.T) {
	t.Parallel()
	s := asynqShell(t)
	dir := t.TempDir()
	url := "rediss://" + overTLS(t, s.rdb.Options().Addr, filepath.Join(dir, "ca.pem")) + "/0"
	for _, c := range []struct {
		redis, env string
		more       []string
		code       int
		says       string
	}{
		{"{url: '" + url + "', tls_ca: ca.pem}", "", nil, exitFine, ""},
		{"{tls_ca: ca.pem}", url, nil, exitFine, ""},
		{"{tls_ca: ca.pem}", s.url, nil, exitAsked, `redis.tls_ca "ca.pem"`},
		{"{tls_ca: ca.pem}", "", []string{"--redis", s.url}, exitFine, ""},
	} {
		file := put(t, filepath.Join(dir, "onbeat.yaml"), "redis: "+c.redis+"\n")
		r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", c.env), "", append([]string{"import", "asynq", "-c", file}, c.more...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("redis: %s, with %q and %v: %+v", c.redis, c.env, c.more, r)
		}
	}
}

// overTLS returns the address of a server that speaks TLS before a Redis. It writes the certificate of its CA into a file.
func overTLS(t *testing.T, redisAddr, ca string) (addr string) {
	t.Helper()
	stranger := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer stranger.Close()
	put(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate().Raw})))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: stranger.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", redisAddr)
			if err != nil {
				_ = from.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}
			all.Go(func() { pass(to, from) })
			all.Go(func() { pass(from, to) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}
