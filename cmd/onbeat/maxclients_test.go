package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
)

func dialed(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := onbeat.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// If Redis accepts no more connections, the error does not ask whether Redis runs.
func TestCommands_sayThatRedisTakesNoMoreConnections(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	if err := rdb.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", srv.Addr()) // if that of rdb is not kept
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: rdb}
	for range 3 {
		for code, args := range map[int][]string{1: {"instances"}, 75: {"lock", "run", "-w", "1", "job", "--", "true"}} {
			r := s.run("", args...)
			if r.code != code || !strings.Contains(r.err, "max number of clients reached (raise maxclients") {
				t.Errorf("%v: %+v", args, r)
			}
			if strings.Contains(r.err, "is it running") {
				t.Errorf("%s", r.err)
			}
		}
	}
}

// The time without a leader begins when the last leader's lease ends, not when another instance notices.
func TestInstances_sayWhenNobodyLedAnyMore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	reg, err := instance.NewRegistry(s.rdb, s.ns)
	if err != nil {
		t.Fatal(err)
	}
	join := func(id string, lease time.Duration) int64 {
		gen, _, _, err := reg.Register(t.Context(), instance.Config{ID: id, Lead: instance.LeadNewest, Consume: instance.ConsumeNewest, Lease: lease}, instance.Past{})
		if err != nil {
			t.Fatal(err)
		}
		return gen
	}
	if _, err := reg.Ready(t.Context(), "leads", join("leads", 3*time.Second), instance.DefaultLease); err != nil {
		t.Fatal(err)
	}
	follower := join("follows", time.Minute) // and is never ready
	end, err := s.rdb.ZScore(t.Context(), "onbeat:{"+s.ns+"}:instances", "leads").Result()
	if err != nil {
		t.Fatal(err)
	}
	want := " since " + store.FromMs(int64(end)).UTC().Format("2006-01-02 15:04:05")
	testredis.Eventually(t, patience, func() bool { return strings.Contains(s.must("instances"), "no instance leads") }, "its lease runs on")
	look := func(when string) {
		t.Helper()
		if out := s.must("doctor"); !strings.Contains(out, "none leads"+want) {
			t.Errorf("%s: want %s in %s", when, want, out)
		}
		if out := s.must("instances"); !strings.Contains(out, "no instance leads"+want) {
			t.Errorf("%s: want %s in %s", when, want, out)
		}
	}
	look("before anybody has noticed")
	if _, err := reg.Heartbeat(t.Context(), "follows", follower, time.Minute, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	look("after")
}

// -w also limits the wait for Redis. Without -w, that wait is for ever.
func TestLockRun_waitsForRedis(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	srv.Stop()
	asked := time.Now()
	r := s.run("", "lock", "run", "-w", "2", "job", "--", "true")
	if r.code != exitNoRedis || !strings.Contains(r.err, "waiting for") || !strings.Contains(r.err, "connection refused") {
		t.Errorf("%+v", r)
	}
	if took := time.Since(asked); took < 1400*time.Millisecond || took > 4*time.Second {
		t.Errorf("-w 2 gave up after %v", took)
	}
	done := make(chan ran, 1)
	go func() { done <- s.run("", "lock", "run", "job", "--", "echo", "ran") }()
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %+v", r)
	case <-time.After(4 * time.Second):
	}
	srv.Restart()
	if r := <-done; r.code != 0 || r.out != "ran\n" {
		t.Errorf("%+v", r)
	}
}
