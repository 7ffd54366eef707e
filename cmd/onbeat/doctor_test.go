package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/testredis"
)

type diagnosis struct {
	Redis, Namespace string
	Checks           []check
}

func (d diagnosis) of(name string) check {
	for _, c := range d.Checks {
		if c.Name == name {
			return c
		}
	}
	return check{}
}

func diagnose(t *testing.T, s *shell, code int) diagnosis {
	t.Helper()
	r := s.run("", "doctor", "--json")
	if r.code != code || r.err != "" {
		t.Errorf("exit %d, want %d: %s%s", r.code, code, r.out, r.err)
	}
	var d diagnosis
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	return d
}

func TestDoctor_findsAHealthyRedisHealthy(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes")
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	s.serving("--release", "v1")
	d := diagnose(t, s, 0)
	for _, name := range []string{"server", "role", "persistence", "eviction", "memory", "scripts", "clock", "namespace", "instances", "caps", "dead"} {
		if c := d.of(name); c.State != checkOK || c.Detail == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := d.of("persistence"); !strings.Contains(c.Detail, "may lose the last second") {
		t.Errorf("%+v", c)
	}
	out := s.must("doctor")
	if head := strings.Join(cells(out, "CHECK"), " "); head != "CHECK STATE FOUND" {
		t.Errorf("head %q", head)
	}
}

func TestDoctor_findsWhatGoesWrong(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: rdb}
	set := func(name, value string) {
		t.Helper()
		if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("maxmemory-policy", "allkeys-lru")
	d := diagnose(t, s, 1)
	if c := d.of("eviction"); c.State != checkFail || !strings.Contains(c.Detail, "allkeys-lru") || !strings.Contains(c.Hint, "noeviction") {
		t.Errorf("%+v", c)
	}
	set("maxmemory-policy", "noeviction")
	s.must("enqueue", "mine.own")
	d = diagnose(t, s, 0)
	if c := d.of("persistence"); c.State != checkWarn {
		t.Errorf("nothing is kept, and: %+v", c)
	}
	if c := d.of("instances"); c.State != checkWarn || !strings.Contains(c.Detail, "none runs") {
		t.Errorf("%+v", c)
	}
	s.serving("--release", "v1")
	d = diagnose(t, s, 0)
	if c := d.of("handlers"); c.State != checkWarn || !strings.Contains(c.Detail, "1 of type mine.own") {
		t.Errorf("%+v", c)
	}
	if c := d.of("instances"); c.State != checkOK || !strings.Contains(c.Detail, "of release v1 leads") {
		t.Errorf("%+v", c)
	}
	s.failed(s.run("", "doctor", "--redis", "redis://127.0.0.1:1"), 1, "no redis", "unreachable")
}

func TestDoctor_leavesWhatNobodyHandlesOutOfLateness(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "mine.own", "--at", "2020-01-01T00:00:00Z")
	if c := diagnose(t, s, 0).of("lateness"); c.State != checkWarn || c.Hint != "start an instance: onbeat serve" {
		t.Errorf("no instance: %+v", c)
	}
	s.serving("--release", "v1")
	d := diagnose(t, s, 0)
	if c := d.of("lateness"); c.State != checkOK {
		t.Errorf("%+v", c)
	}
	if c := d.of("handlers"); c.State != checkWarn || !strings.Contains(c.Hint, "onbeat tasks delete ID") {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_saysHowLongTheOldestHasBeenWaiting(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "old", "--at", "2020-01-01T00:00:00Z")
	if c := diagnose(t, s, 0).of("lateness"); !strings.Contains(c.Detail, "(old) has been waiting for ") {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_mayDoWithoutInfoAndConfig(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-info", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	s := &shell{T: t, ns: testredis.Namespace(t), url: strings.Replace(srv.URL(), "redis://", "redis://app:pw@", 1), rdb: rdb}
	d := diagnose(t, s, 0)
	if c := d.of("server"); c.State != checkWarn || !strings.Contains(d.Redis, "app:…@") {
		t.Errorf("%+v of %s", c, d.Redis)
	}
	s.url = strings.Replace(s.url, ":pw@", ":wrong@", 1)
	s.fails(1, []string{"doctor"}, "redis denies access", "check the user and password")
}

func TestDoctor_judgesWhatRedisSays(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	for _, c := range []struct {
		info         map[string]string
		fsync, save  string
		check, state string
		says         string
	}{
		{map[string]string{"role": "slave", "master_host": "h"}, "", "", "role", checkFail, "slave of h"},
		{map[string]string{"role": "master", "connected_slaves": "2"}, "", "", "role", checkOK, "2 replicas"},
		{map[string]string{"cluster_enabled": "1"}, "", "", "cluster", checkFail, "one node of a cluster"},
		{map[string]string{"aof_enabled": "1", "aof_last_write_status": "err"}, "", "", "persistence", checkFail, "failed"},
		{map[string]string{"aof_enabled": "1"}, "always", "", "persistence", checkOK, "nothing that was answered is lost"},
		{map[string]string{"aof_enabled": "1"}, "no", "", "persistence", checkWarn, "half a minute"},
		{map[string]string{"aof_enabled": "0"}, "", "3600 1", "persistence", checkWarn, "snapshots only"},
		{map[string]string{"used_memory": "95", "maxmemory": "100"}, "", "", "memory", checkWarn, "95 B of 100 B"},
		{map[string]string{"used_memory": "50", "maxmemory": "100"}, "", "", "memory", checkOK, "50 B of 100 B"},
	} {
		for name, value := range map[string]string{"appendfsync": c.fsync, "save": c.save} {
			if value == "" && name == "appendfsync" {
				value = "everysec"
			}
			if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		d := &doctor{client: &client{rdb: rdb}, node: rdb, info: c.info}
		d.role(t.Context())
		d.cluster(t.Context())
		d.persistence(t.Context())
		d.memory(t.Context())
		if got := (diagnosis{Checks: d.checks}).of(c.check); got.State != c.state || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%v: %+v, want %s and %q", c.info, got, c.state, c.says)
		}
	}
}

func TestDoctor_seesKeysOverTheirCaps(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pipe := s.rdb.Pipeline()
	for i := range 1200 {
		pipe.ZAdd(t.Context(), "onbeat:{"+s.ns+"}:dead", redis.Z{Score: float64(i), Member: i})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := s.file("c.yaml", "keep: {dead: 10}\n")
	if out := s.must("doctor", "-c", config); !strings.Contains(out, "dead holds 1200 of 10") {
		t.Errorf("%s", out)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"6.2.0": true, "6.0.16": false, "7.0.15": true, "5": false, "7": true, "10.1": true, "x": false} {
		if got := atLeast(version, 6, 2); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
	for n, want := range map[int64]string{5: "5 B", 2048: "2.0 KiB", 3 << 30: "3.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
