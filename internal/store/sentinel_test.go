package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A sentinel that is behind, and answers before the others, strands no client, whatever address it names.
func TestDial_goesByTheOtherSentinels(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinels(t)
	primary := g.Leading(t)
	for name, names := range map[string]string{
		"a replica": g.Replicas[0].Addr(), "nobody": nobody(t), "a primary of old": testredis.Private(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			stale := falseSentinel(t, names, "0")
			url := strings.Replace(g.URL(), "://", "://"+stale+",", 1)
			slowest := time.Duration(0)
			for i := range 20 {
				slowest = max(slowest, writes(t, store.Dialer{}, url, primary, fmt.Sprintf("onbeat:test:%d", i)))
			}
			t.Logf("the slowest of 20: %v; go-redis by itself strands %d of 20", slowest, strandedByItself(t, stale, g.URL(), primary))
		})
	}
}

// writes reports how long a new client takes to write to the primary.
func writes(t *testing.T, d store.Dialer, url, primary, key string) time.Duration {
	t.Helper()
	rdb, err := d.Dial(url + "?max_retries=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	begun := time.Now()
	if err := rdb.Set(t.Context(), key, "1", time.Minute).Err(); err != nil {
		t.Errorf("%s: %v", key, err)
	}
	took := time.Since(begun)
	if took > 2*time.Second {
		t.Errorf("%s: written after %v", key, took)
	}
	at := redis.NewClient(&redis.Options{Addr: primary})
	defer func() { _ = at.Close() }()
	if n, err := at.Exists(t.Context(), key).Result(); err != nil || n != 1 {
		t.Errorf("%s is not on the primary: %d, %v", key, n, err)
	}
	_ = at.Del(t.Context(), key)
	return took
}

// strandedByItself is how many of twenty clients go-redis alone leads to where they cannot write, or should not.
func strandedByItself(t *testing.T, stale, url, primary string) (n int) {
	t.Helper()
	at := redis.NewClient(&redis.Options{Addr: primary})
	defer func() { _ = at.Close() }()
	hosts, _, _ := strings.Cut(strings.TrimPrefix(url, "redis-sentinel://"), "/")
	for range 20 {
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "beat", SentinelAddrs: append([]string{stale}, strings.Split(hosts, ",")...),
			MaxRetries: -1, DialerRetries: 1})
		_ = rdb.Set(t.Context(), "onbeat:test:itself", "1", time.Second).Err()
		if at.Del(t.Context(), "onbeat:test:itself").Val() == 0 {
			n++
		}
		_ = rdb.Close()
	}
	return n
}

// The newest configuration wins, though more sentinels name a primary of old, which goes on.
func TestDial_goesByTheNewestConfiguration(t *testing.T) {
	t.Parallel()
	old, primary := testredis.Private(t).Addr(), testredis.Private(t).Addr()
	hosts := []string{falseSentinel(t, old, "8"), falseSentinel(t, old, "9"), falseSentinel(t, primary, "10")}
	for i := range 20 {
		writes(t, store.Dialer{}, "redis-sentinel://"+strings.Join(hosts, ",")+"/beat/0", primary, fmt.Sprintf("onbeat:test:%d", i))
	}
}

// A sentinel that is behind does not take a client back to the old primary, if the newer ones are slow for once.
func TestDial_isNotTakenBackByASlowSentinel(t *testing.T) {
	t.Parallel()
	old, primary := testredis.Private(t), testredis.Private(t)
	stale, newer := &falseSentinels{names: old.Addr(), epoch: "5"}, &falseSentinels{names: primary.Addr(), epoch: "6"}
	rdb, err := store.Dial("redis-sentinel://" + stale.listen(t) + "," + newer.listen(t) + "/beat/0?pool_size=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	set := func() error { return rdb.Set(t.Context(), "onbeat:test:back", "1", time.Minute).Err() }
	testredis.Eventually(t, 10*time.Second, set, "it writes")
	newer.slow.Store(int64(time.Second))
	for range 2 {
		time.Sleep(600 * time.Millisecond) // until the sentinels are asked anew
		_ = primary.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err()
		testredis.Eventually(t, 10*time.Second, set, "it writes again")
	}
	if n := old.Client().Exists(t.Context(), "onbeat:test:back").Val(); n != 0 {
		t.Error("it wrote to the old primary")
	}
}

func TestDialer_logsOnceWhichSentinelIsWrong(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinels(t)
	primary, replica := g.Leading(t), g.Replicas[0].Addr()
	stale := falseSentinel(t, replica, "0")
	var said bytes.Buffer
	rdb, err := store.Dialer{Log: zerolog.New(zerolog.SyncWriter(&said))}.Dial(strings.Replace(g.URL(), "://", "://"+stale+",", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	for range 4 {
		conn := rdb.(*redis.Client).Conn()
		if err := conn.Set(t.Context(), "onbeat:test:log", "1", time.Second).Err(); err != nil {
			t.Error(err)
		}
		_ = conn.Do(t.Context(), "quit").Err()
		_ = conn.Ping(t.Context()).Err() // it finds the connection closed
		_ = conn.Close()
		time.Sleep(550 * time.Millisecond) // until the sentinels are asked anew
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 1 {
		t.Errorf("%d lines: %s", len(lines), &said)
	}
	for _, want := range []string{`"level":"warn"`, `"sentinel":"` + stale + `"`, `"names":"` + replica + `"`, `"primary":"` + primary + `"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s\nis without %s", lines[0], want)
		}
	}
}

// Sentinels that all lead nowhere are named, each with its answer, and the call may be tried again.
func TestDial_saysWhatTheSentinelsName(t *testing.T) {
	t.Parallel()
	_, replica := testredis.Replicated(t)
	for _, n := range []int{1, 2} {
		away := nobody(t)
		hosts := []string{away}
		for range n {
			hosts = append(hosts, falseSentinel(t, replica.Addr(), "7"))
		}
		rdb, err := store.Dial("redis-sentinel://" + strings.Join(hosts, ",") + "/beat/0?max_retries=-1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rdb.Close() }()
		err = rdb.Set(t.Context(), "onbeat:test:nowhere", "1", time.Second).Err()
		if err == nil || !store.NotSent(err) || !errors.Is(store.Classify(err), task.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
			continue
		}
		for _, want := range hosts[1:] {
			if want = "sentinel " + want + " names " + replica.Addr() + " (a replica)"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nis without %s", err, want)
			}
		}
		if want := "sentinel " + away + ": connect: connection refused"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nis without %s", err, want)
		}
	}
}

// A pool that fills asks the sentinels once.
func TestDial_asksSentinelsOnceForMany(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	f := &falseSentinels{names: srv.Addr(), epoch: "1"}
	rdb, err := store.Dial("redis-sentinel://" + f.listen(t) + "/beat/0?pool_size=20")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := rdb.BLPop(t.Context(), 100*time.Millisecond, "onbeat:test:none").Err(); !errors.Is(err, redis.Nil) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f.Lock()
	defer f.Unlock()
	if f.asked > 3 { // the first dial, and the questions of go-redis itself
		t.Errorf("it was asked %d times", f.asked)
	}
}

// falseSentinel always names the same address, in a configuration of the given epoch, and is faster than any real one.
func falseSentinel(t *testing.T, names, epoch string) (addr string) {
	t.Helper()
	return (&falseSentinels{names: names, epoch: epoch}).listen(t)
}

type falseSentinels struct {
	names, epoch string
	slow         atomic.Int64 // how long it takes to answer, in ns

	sync.Mutex
	asked int
	conns []net.Conn
}

func (f *falseSentinels) listen(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			f.Lock()
			f.conns = append(f.conns, conn)
			f.Unlock()
			all.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		f.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.Unlock()
		all.Wait()
	})
	return ln.Addr().String()
}

func (f *falseSentinels) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := request(r)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(f.slow.Load()))
		host, port, _ := net.SplitHostPort(f.names)
		answer := "-ERR unknown command\r\n"
		switch what := strings.ToLower(strings.Join(args[:min(2, len(args))], " ")); {
		case what == "sentinel get-master-addr-by-name":
			f.Lock()
			f.asked++
			f.Unlock()
			answer = array(host, port)
		case what == "sentinel master":
			answer = array("name", "beat", "ip", host, "port", port, "config-epoch", f.epoch)
		case strings.HasPrefix(what, "client"):
			answer = "+OK\r\n"
		case what == "sentinel sentinels":
			answer = "*0\r\n"
		case strings.HasPrefix(what, "subscribe"), strings.HasPrefix(what, "ping"):
			answer = ""
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func array(items ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(items))
	for _, s := range items {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(s), s)
	}
	return text
}

// request reads a command in the form in which clients send it.
func request(r *bufio.Reader) (args []string, err error) {
	number := func() int {
		line, e := r.ReadString('\n')
		err = errors.Join(err, e)
		n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimLeft(line, "*$")))
		return n
	}
	for range number() {
		arg := make([]byte, number()+2)
		if _, e := io.ReadFull(r, arg); e != nil {
			return nil, e
		}
		args = append(args, string(arg[:len(arg)-2]))
	}
	return args, err
}
