package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

type diagnosis struct {
	Redis, Namespace string
	Checks           []doctor.Check
}

func (d diagnosis) of(name string) doctor.Check {
	for _, c := range d.Checks {
		if c.Name == name {
			return c
		}
	}
	return doctor.Check{}
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
		if c := d.of(name); c.State != doctor.OK || c.Detail == "" {
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
	if c := d.of("eviction"); c.State != doctor.Fail || !strings.Contains(c.Detail, "allkeys-lru") || !strings.Contains(c.Hint, "noeviction") {
		t.Errorf("%+v", c)
	}
	set("maxmemory-policy", "noeviction")
	s.must("enqueue", "mine.own")
	d = diagnose(t, s, 0)
	if c := d.of("persistence"); c.State != doctor.Warn {
		t.Errorf("nothing is kept, and: %+v", c)
	}
	if c := d.of("instances"); c.State != doctor.Warn || !strings.Contains(c.Detail, "no instance runs") {
		t.Errorf("%+v", c)
	}
	s.serving("--release", "v1")
	d = diagnose(t, s, 0)
	if c := d.of("handlers"); c.State != doctor.Warn || !strings.Contains(c.Detail, "1 of type mine.own") {
		t.Errorf("%+v", c)
	}
	if c := d.of("instances"); c.State != doctor.OK || !strings.Contains(c.Detail, "of release v1 leads") {
		t.Errorf("%+v", c)
	}
	s.failed(s.run("", "doctor", "--redis", "redis://127.0.0.1:1"), 1, "no redis", "unreachable")
}

func TestDoctor_namesALaneThatIsNone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "echo", "--in", "1h")
	if c := diagnose(t, s, 0).of("damage"); c.State != doctor.OK {
		t.Errorf("%+v", c)
	}
	if err := s.rdb.HSet(t.Context(), "onbeat:{"+s.ns+"}:lanes", "bad\x1b\n"+strings.Repeat("x", 99), "1", "default|normal|a", "1").Err(); err != nil {
		t.Fatal(err)
	}
	c := diagnose(t, s, 1).of("damage")
	if c.State != doctor.Fail || !strings.Contains(c.Detail, `"bad\x1b\nxxx`) || strings.Contains(c.Detail, "default") || len(c.Detail) > 150 {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_namesWhoFillsTheLanes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	lanes := map[string]any{}
	for i := range queue.MostLanes*8/10 - 1 {
		lanes[fmt.Sprintf("default|normal|t%d", i)] = "1 shop"
	}
	keys := queue.Partition{Namespace: s.ns}.Keys()
	if err := s.rdb.HSet(t.Context(), keys.Lanes, lanes).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range diagnose(t, s, 0).Checks {
		if c.Name == "lanes" {
			t.Errorf("below 80 %%: %+v", c)
		}
	}
	s.must("enqueue", "echo", "--in", "1h")
	if c := diagnose(t, s, 0).of("lanes"); c.State != doctor.Warn || !strings.Contains(c.Detail, `"shop"`) {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_leavesWhatNobodyHandlesOutOfLateness(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "mine.own", "--at", "2020-01-01T00:00:00Z")
	if c := diagnose(t, s, 0).of("lateness"); c.State != doctor.Warn || c.Hint != "start an instance: onbeat serve" {
		t.Errorf("no instance: %+v", c)
	}
	s.serving("--release", "v1")
	d := diagnose(t, s, 0)
	if c := d.of("lateness"); c.State != doctor.OK {
		t.Errorf("%+v", c)
	}
	if c := d.of("handlers"); c.State != doctor.Warn || !strings.Contains(c.Hint, "onbeat tasks cancel --all") {
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
	if c := d.of("server"); c.State != doctor.Warn || !strings.Contains(d.Redis, "app:…@") {
		t.Errorf("%+v of %s", c, d.Redis)
	}
	s.url = strings.Replace(s.url, ":pw@", ":wrong@", 1)
	s.fails(1, []string{"doctor"}, "redis denies access", "check the user and password")
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
