package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestInstances_listsAsBefore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.must("instances", "--json"); !strings.Contains(out, `"items":[]`) {
		t.Errorf("%q", out)
	}
	s.release("v1")
	testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.must("instances"), "leads") }, "v1 leads")
	if head := strings.Join(cells(s.must("instances", "list"), "ID"), " "); head != "ID RELEASE STATE LEADER LEASE LEFT RUNNING HOST:PID UPTIME" {
		t.Errorf("head %q", head)
	}
}

func TestInstancesPromote(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	leads := func(id string) {
		t.Helper()
		testredis.Eventually(t, 30*time.Second, func() bool {
			var list admin.List[admin.Instance]
			s.json(&list, "instances")
			for _, i := range list.Items {
				if i.ID == id {
					return i.Leader
				}
			}
			return false
		}, "%s leads", id)
	}
	one := s.release("v41")
	leads(one.ID())
	two := s.release("v42")
	leads(two.ID())
	s.fails(1, []string{"instances", "promote", "v4"}, `release "v4": no instance of it is registered`, "known: v41, v42")
	s.fails(1, []string{"instances", "promote", "elsewhere"}, "known: v4")
	if out, want := s.must("instances", "promote", "v41"), fmt.Sprintf("promoted v41: %s leads\n", one.ID()); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	leads(one.ID())
	var p admin.Promoted
	s.json(&p, "instances", "promote", "v42")
	if p != (admin.Promoted{Release: "v42", Leader: two.ID(), Leads: true}) {
		t.Errorf("%+v", p)
	}
	if out := s.must("events"); strings.Count(out, "promoted") != 2 {
		t.Errorf("events:\n%s", out)
	}
}

// No instance begins a task during a pause. instances and doctor show the pause, and it ends by hand or by itself.
func TestInstancesPause(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.release("v1")
	testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.must("instances"), "leads") }, "v1 leads")
	if out := s.must("instances", "pause", "--for", "1m"); !strings.HasPrefix(out, "paused until 20") {
		t.Errorf("%q", out)
	}
	if out := s.must("instances"); !strings.Contains(out, "paused until 20") || !strings.Contains(out, "onbeat instances resume ends the pause") {
		t.Errorf("instances:\n%s", out)
	}
	if c := diagnose(t, s, 0).of("pause"); c.State != doctor.Warn || c.Hint != "onbeat instances resume ends the pause" {
		t.Errorf("doctor: %+v", c)
	}
	if out := s.must("instances", "resume"); out != "resumed: the tasks that fell due begin now\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("instances"); strings.Contains(out, "paused") {
		t.Errorf("instances:\n%s", out)
	}
	var p admin.Pause
	s.json(&p, "instances", "pause", "--for", "20ms")
	if p.Until.IsZero() {
		t.Error("it does not say until when")
	}
	testredis.Eventually(t, 30*time.Second, func() bool { return !strings.Contains(s.must("instances"), "paused") }, "the pause ends by itself")
	for _, d := range []string{"0s", "-1s", "11m"} {
		s.fails(2, []string{"instances", "pause", "--for=" + d}, "for", "out of range")
	}
}
