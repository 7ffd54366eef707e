package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// timesOut waits until a wait that gives up soon says that. On a busy machine one wait may end before its first look at Redis.
func (s *shell) timesOut(says string, args ...string) {
	s.Helper()
	var r ran
	testredis.Eventually(s, patience, func() bool {
		r = s.run("", append(append([]string{"instances"}, args...), "--timeout=500ms")...)
		return r.code != 1 || strings.Contains(r.err, says)
	}, "onbeat instances %v says %q", args, says)
	s.failed(r, 1, args, says)
}

// wantsLeader waits until that instance leads.
func (s *shell) wantsLeader(id string) {
	s.Helper()
	testredis.Eventually(s, 30*time.Second, func() bool {
		var list admin.InstanceList
		s.json(&list, "instances")
		lead := list.Leader()
		return lead != nil && lead.ID == id
	}, "%s leads", id)
}

// frozen registers an instance that is ready and does nothing, not even send heartbeats.
func (s *shell) frozen(release string) (id string) {
	s.Helper()
	reg, err := instance.NewRegistry(s.rdb, s.ns)
	if err != nil {
		s.Fatal(err)
	}
	c := instance.Config{ID: "frozen", Release: release, Lease: time.Minute}
	gen, _, _, err := reg.Register(s.Context(), c, instance.Past{})
	if err == nil {
		_, err = reg.Ready(s.Context(), c.ID, gen, c.Lease)
	}
	if err != nil {
		s.Fatal(err)
	}
	return c.ID
}

func TestInstancesResign(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	one := s.release("v1")
	s.wantsLeader(one.ID())
	s.fails(1, []string{"instances", "resign", one.ID()}, "no other instance is ready to lead", "start another instance")
	two := s.release("v1")
	s.wantsLeader(two.ID())
	if out, want := s.must("instances", "resign", two.ID()), fmt.Sprintf("resigned %s: %s leads\n", two.ID(), one.ID()); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := s.must("instances"); !strings.Contains(out, "ready, resigned") {
		t.Errorf("instances:\n%s", out)
	}
	if err := two.Unready(); err != nil {
		t.Errorf("it is ready, and Unready says %v", err)
	}
	if out := s.must("events"); !strings.Contains(out, "asked to resign") || !strings.Contains(out, actor()) {
		t.Errorf("events:\n%s", out)
	}
	var got asked
	s.json(&got, "instances", "resign", one.ID())
	if got != (asked{ID: one.ID(), Leader: two.ID()}) {
		t.Errorf("%+v", got)
	}
}

// Part of an ID is never enough, even if it fits one instance alone.
func TestInstancesDrain_wantsTheWholeID(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(1, []string{"instances", "drain", "x"}, `instance "x": not registered`, "no instance is registered")
	one := s.release("v1")
	s.wantsLeader(one.ID())
	for _, part := range []string{one.ID()[:8], one.ID()[24:]} {
		for _, what := range []string{"drain", "resign"} {
			s.fails(1, []string{"instances", what, part}, "not registered", "write the whole ID: "+one.ID())
		}
	}
	s.fails(1, []string{"instances", "drain", "elsewhere"}, "known: "+one.ID())
	s.fails(2, []string{"instances", "drain", one.ID(), "--timeout=0s"}, "timeout")
	s.wantsLeader(one.ID())
}

func TestInstancesDrain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	one := s.release("v1")
	s.wantsLeader(one.ID())
	two := s.release("v1")
	s.wantsLeader(two.ID())
	if out := s.must("instances", "drain", two.ID(), "--wait"); !strings.HasPrefix(out, "drained "+two.ID()+" after ") {
		t.Errorf("%q", out)
	}
	s.wantsLeader(one.ID())
	testredis.Eventually(t, 30*time.Second, func() bool { return two.Unready() != nil }, "its Run returns")
	var got asked
	s.json(&got, "instances", "drain", one.ID(), "--wait")
	if got != (asked{ID: one.ID(), Left: true}) {
		t.Errorf("%+v", got)
	}
}

// --wait with drain ends when the time is over, and says what still runs. The request stands.
func TestInstancesDrain_saysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.frozen("v1")
	s.timesOut(id, "drain", id, "--wait")
	s.timesOut("1 draining", "--wait=ready=1")
}

// A leader that is suspected is shown as such while its lease runs, and nobody waits for it.
func TestInstances_saysWhoIsSuspected(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.frozen("v1")
	var list admin.InstanceList
	s.json(&list, "instances")
	key := queue.Partition{Namespace: s.ns}.Keys().Suspects
	noted := fmt.Sprint(list.Items[0].Generation, " 1 0 0 ", list.Now.UnixMilli()) // as look.lua writes it
	if err := s.rdb.HSet(t.Context(), key, id, noted).Err(); err != nil {
		t.Fatal(err)
	}
	if out := s.must("instances"); !strings.Contains(out, "ready, suspected") {
		t.Errorf("instances:\n%s", out)
	}
	s.timesOut("1 suspected", "--wait=ready=1")
}

func TestInstancesWait(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.timesOut("0 of 1", "--wait=ready=1")
	for _, args := range [][]string{{"--wait=3"}, {"--wait=ready=0"}, {"--wait=ready=x"}, {"--wait=ready=1", "--timeout=0s"}, {"--release=v1"}} {
		s.fails(2, append([]string{"instances"}, args...), "for example")
	}
	one := s.release("v1")
	done := make(chan string, 1)
	go func() { done <- s.must("instances", "--wait", "ready=2", "--release", "v2", "--timeout", "20s") }()
	two := s.release("v2")
	s.timesOut("1 of 2", "--wait=ready=2", "--release=v2")
	three := s.release("v2")
	table := <-done
	for _, id := range []string{one.ID(), two.ID(), three.ID()} {
		if !strings.Contains(table, id) {
			t.Errorf("%s is not in\n%s", id, table)
		}
	}
	var list admin.InstanceList
	s.json(&list, "instances", "list", "--wait=ready=3")
	if len(list.Items) != 3 {
		t.Errorf("%+v", list)
	}
}

// A wait that begins while Redis is away, and during which it goes away, ends well when it is back.
func TestInstancesWait_outlivesAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := newShell(t)
	s.url, s.rdb = srv.URL(), srv.Client()
	srv.Stop()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.timesOut(u.Host, "--wait=ready=1")
	done := make(chan ran, 1)
	go func() { done <- s.run("", "instances", "--wait=ready=1", "--timeout=30s") }()
	time.Sleep(300 * time.Millisecond) // so that the wait has begun
	srv.Restart()
	s.release("v1")
	if r := <-done; r.code != 0 || !strings.Contains(r.out, "ready") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan ran, 1)
	go func() { ended <- runWith(ctx, s.env(), "", "instances", "--wait=ready=9") }()
	stop()
	if r := <-ended; r.code != 1 || !strings.Contains(r.err, "interrupted") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// onbeat serve ends with exit code 0 when it is asked to drain.
func TestServe_endsWhenAskedToDrain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	done := make(chan ran, 1)
	go func() { done <- s.run("", "serve", "--release", "v1") }()
	s.must("instances", "--wait=ready=1", "--timeout=20s")
	var list admin.InstanceList
	s.json(&list, "instances")
	s.must("instances", "drain", list.Items[0].ID, "--wait")
	select {
	case r := <-done:
		if r.code != 0 || !strings.Contains(r.err, "asked to drain") {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("serve goes on")
	}
}
