package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// The name of an empty namespace is probably mistyped: the doctor warns, and names the nearest namespace that it finds.
func TestDoctor_warnsOfAnEmptyNamespace(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := &shell{T: t, ns: "bilings", url: srv.URL(), rdb: srv.Client()}
	if c := diagnose(t, s, 0).of("namespace"); c.State != doctor.Warn || !strings.Contains(c.Hint, "start an instance: onbeat serve") {
		t.Errorf("the only one: %+v", c)
	}
	s.nothingWritten()
	for _, ns := range []string{"billing", "warehouse"} {
		other := *s
		other.ns = ns
		other.must("enqueue", "mine.own")
	}
	if err := s.rdb.HSet(t.Context(), "onbeat:{no name}:meta", "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	if c := diagnose(t, s, 0).of("namespace"); c.State != doctor.Warn || c.Hint != "did you mean billing?" {
		t.Errorf("%+v", c)
	}
	s.ns = "zzz"
	if c := diagnose(t, s, 0).of("namespace"); c.State != doctor.Warn || !strings.HasSuffix(c.Hint, "this Redis has billing, warehouse") {
		t.Errorf("none is near: %+v", c)
	}
	s.ns = "billing"
	if c := diagnose(t, s, 0).of("namespace"); c.State != doctor.OK || !strings.Contains(c.Detail, "1 due") {
		t.Errorf("not empty: %+v", c)
	}
}

// Without the right to SCAN the doctor warns as well, and names no other namespace.
func TestDoctor_warnsOfAnEmptyNamespaceWithoutScan(t *testing.T) {
	t.Parallel()
	if c := diagnose(t, newShell(t).as(queue.AsInstance), 0).of("namespace"); c.State != doctor.Warn || strings.Contains(c.Hint, "on this Redis") {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_findsOtherNamespacesOfACluster(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	s := &shell{T: t, url: c.URL(), rdb: c.Nodes[0].Client()}
	for _, ns := range []string{"billing", "warehouse", "shop", "mail"} {
		s.ns = ns
		s.must("enqueue", "mine.own")
	}
	s.ns = "zzz"
	if c := diagnose(t, s, 0).of("namespace"); !strings.HasSuffix(c.Hint, "this Redis has billing, mail, shop, warehouse") {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_checksRedisAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := testEnv("ONBEAT_REDIS_URL", s.url)
	r := runWith(t.Context(), env, "", "doctor", "--json")
	var d diagnosis
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || r.code != 0 || r.err != "" || d.Namespace != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, name := range []string{"server", "writes", "scripts", "latency", "clock"} {
		if c := d.of(name); c.Name == "" || c.State == doctor.Fail {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"rights", "namespace", "instances", "caps", "damage", "lateness", "dead"} {
		if c := d.of(name); c.Name != "" {
			t.Errorf("%+v", c)
		}
	}
	r = runWith(t.Context(), env, "", "doctor")
	if first, _, _ := strings.Cut(r.out, "\n"); !strings.Contains(first, "(only Redis: pass --namespace") || strings.Contains(r.out, "onbeat-doctor") {
		t.Errorf("%s", r.out)
	}
	if n, err := s.rdb.Keys(t.Context(), "*{"+"onbeat-doctor"+"}*").Result(); err != nil || len(n) > 0 {
		t.Errorf("written: %v, %v", n, err)
	}
}

// The doctor reports no missing right to a user that has all rights, but only in its own namespace.
func TestDoctor_checksRedisAloneForAnInstance(t *testing.T) {
	t.Parallel()
	s := newShell(t).as(queue.AsInstance)
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", "doctor", "--json")
	var d diagnosis
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || r.code != 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	if c := d.of("writes"); c.State != doctor.Warn || !strings.Contains(c.Hint, "--namespace") {
		t.Errorf("%+v", c)
	}
	if c := d.of("latency"); c.Name == "" || c.State == doctor.Fail {
		t.Errorf("%+v", c)
	}
}

func TestDoctor_strictFailsForWarnings(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes")
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	s.serving("--release", "v1")
	r := s.run("", "doctor", "--strict", "--json")
	if want := strings.Contains(r.out, `"state":"warn"`); (r.code == exitFailed) != want { // a busy machine is slow, of which latency warns
		t.Errorf("%+v", r)
	}
	if r := s.run("", "enqueue", "mine.own"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if out := s.must("doctor"); !strings.Contains(out, "mine.own") {
		t.Errorf("%s", out)
	}
	if r = s.run("", "doctor", "--strict"); r.code != exitFailed || r.err != "" || !strings.Contains(r.out, "mine.own") {
		t.Errorf("%+v", r)
	}
}

// Instances whose leases have run out do no work, so the doctor does not advise more concurrency.
func TestDoctor_startsAnInstanceWhereNoneLives(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "echo", "--at", "2020-01-01T00:00:00Z")
	key := "onbeat:{" + s.ns + "}:"
	for _, err := range []error{
		s.rdb.ZAdd(t.Context(), key+"instances", redis.Z{Score: 1, Member: "gone"}).Err(),
		s.rdb.HSet(t.Context(), key+"details", "gone", `{"id":"gone","types":["echo"]}`).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d := diagnose(t, s, 1)
	if c := d.of("instances"); c.State != doctor.Fail {
		t.Errorf("%+v", c)
	}
	if c := d.of("lateness"); c.State != doctor.Warn || c.Hint != "start an instance: onbeat serve" {
		t.Errorf("%+v", c)
	}
}
