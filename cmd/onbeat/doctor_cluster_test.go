package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/testredis"
)

// The doctor reports that the namespace's slot is being moved, and does not ask for more workers then. It compares the
// lease with how long a failover takes, and names no missing right while the cluster is down.
func TestDoctor_looksAtACluster(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	s := &shell{T: t, ns: "doctored", url: c.URL(), rdb: c.Nodes[0].Client()}
	key := "onbeat:{doctored}:meta"
	s.must("enqueue", "old", "--at", "2020-01-01T00:00:00Z")
	d := diagnose(t, s, 0)
	if r := d.of("cluster"); r.State != doctor.OK {
		t.Errorf("%+v", r)
	}
	if r := d.of("failover"); r.State != doctor.OK || !strings.Contains(r.Detail, "takes up to 4s (cluster-node-timeout is 1s), and the shortest lease is 5s") {
		t.Errorf("%+v", r)
	}
	owner := c.Owner(t, key)
	if err := owner.Client().ConfigSet(t.Context(), "cluster-node-timeout", "15000").Err(); err != nil {
		t.Fatal(err)
	}
	if r := diagnose(t, s, 0).of("failover"); r.State != doctor.Warn || !strings.Contains(r.Hint, "set lease: 18s or more") {
		t.Errorf("%+v", r)
	}

	m := c.BeginMove(t, key)
	d = diagnose(t, s, 1)
	want := fmt.Sprintf("slot %d, which holds the namespace, is being moved from %s to %s", m.Slot, m.From.Addr(), m.To.Addr())
	if r := d.of("cluster"); r.State != doctor.Fail || !strings.Contains(r.Detail, want) || !strings.Contains(r.Hint, "redis-cli --cluster fix "+m.From.Addr()) {
		t.Errorf("%+v, want %s", r, want)
	}
	for _, r := range d.Checks {
		if strings.Contains(r.Hint, "raise concurrency") || strings.Contains(r.Hint, "user needs") {
			t.Errorf("%+v", r)
		}
	}
	s.fails(1, []string{"enqueue", "new"}, "TRYAGAIN", "the cluster is moving a slot", "redis-cli --cluster fix HOST:PORT")
	m.End()
	s.must("enqueue", "new")
	if r := diagnose(t, s, 0).of("cluster"); r.State != doctor.OK {
		t.Errorf("%+v", r)
	}
}

// The doctor does not take a call that Redis cannot answer now for a missing right.
func TestDoctor_takesNoTroubleOfAClusterForAMissingRight(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--cluster-enabled", "yes") // no slot is served
	rdb := srv.Client()
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: rdb}
	d := diagnose(t, s, 1)
	for _, name := range []string{"scripts", "latency", "writes"} {
		r := d.of(name)
		if strings.Contains(r.Hint, "the user needs") {
			t.Errorf("%+v", r)
		}
		if r.State == doctor.Fail && !strings.Contains(r.Hint, "redis-cli --cluster check") {
			t.Errorf("%+v", r)
		}
	}
	if r := d.of("latency"); r.State != doctor.Fail || !strings.Contains(r.Detail, "CLUSTERDOWN") {
		t.Errorf("%+v", r)
	}
}

// The doctor compares the lease with the setting of the sentinels.
func TestDoctor_comparesTheLeaseWithTheSentinels(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinels(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: g.URL(), rdb: g.Primary.Client()}
	if r := diagnose(t, s, 0).of("failover"); r.State != doctor.OK || !strings.Contains(r.Detail, "takes up to 4s (down-after-milliseconds is 1s)") {
		t.Errorf("%+v", r)
	}
	hosts, _, _ := strings.Cut(strings.TrimPrefix(g.URL(), "redis-sentinel://"), "/")
	for host := range strings.SplitSeq(hosts, ",") {
		rdb := dialed(t, "redis://"+host)
		if err := rdb.Do(context.Background(), "sentinel", "set", "beat", "down-after-milliseconds", "5000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if r := diagnose(t, s, 0).of("failover"); r.State != doctor.Warn || !strings.Contains(r.Detail, "8s") || !strings.Contains(r.Hint, "set lease: 8s or more, or lower down-after-milliseconds") {
		t.Errorf("%+v", r)
	}
	file := s.file("c.yaml", "lease: 10s\n")
	if out := s.must("doctor", "-c", file); !strings.Contains(out, "the shortest lease is 10s") {
		t.Errorf("%s", out)
	}
}

// The node that has the number of partitions hangs. Without a config the doctor does not take the namespace for one that is not split.
// With a config, the doctor names the node, and has an answer for each of the others.
func TestDoctor_aNodeHangs(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t, "--cluster-require-full-coverage", "no")
	s := &shell{T: t, ns: testredis.Namespace(t), url: c.URL()}
	config := s.file("six.yaml", "partitions: 6\n")
	for i := range 12 {
		s.must("enqueue", "echo", "-c", config, "--id", fmt.Sprint("t", i))
	}
	dead := c.Owner(t, "onbeat:{"+s.ns+"}:meta")
	c.Nodes[(slices.Index(c.Nodes, dead)+3)%6].Pause()
	dead.Pause()
	began := time.Now()
	took := func(what string) {
		t.Logf("%s took %v", what, time.Since(began).Round(time.Millisecond))
		began = time.Now()
	}
	s.fails(1, []string{"doctor"}, "--config")
	took("doctor without a config")
	r := s.run("", "doctor", "-c", config)
	took("doctor")
	if r.code != 1 || !strings.Contains(r.out, dead.Addr()+" does not answer") || !strings.Contains(r.out, "all that an instance needs") && !strings.Contains(r.out, "ok in") {
		t.Errorf("%d %s %s", r.code, r.out, r.err)
	}
	if r := s.run("", "tasks", "list", "-c", config); r.code != 1 || !strings.Contains(r.err, "partition") {
		t.Errorf("%d %s %s", r.code, r.out, r.err)
	}
	took("tasks list")
}
