package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// release runs an instance of a release that declares schedules, each due every hour.
func (s *shell) release(name string, declared ...string) *instance.Manager {
	s.Helper()
	part := queue.Partition{Namespace: s.ns}
	q, err := queue.New(s.rdb, part, queue.Caps{})
	if err != nil {
		s.Fatal(err)
	}
	m, err := instance.New(q.Client(), part.Namespace, instance.Config{Release: name})
	if err != nil {
		s.Fatal(err)
	}
	list := []producer.Schedule{}
	for _, name := range declared {
		list = append(list, producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "echo"})
	}
	work, err := producer.NewScheduler(q.Client(), s.ns, producer.SchedulerConfig{
		Declared: func() []producer.Schedule { return list },
	})
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(s.Context(), work.Run) }()
	s.Cleanup(func() {
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return m
}

func TestCheck_againstLiveNamesWhatWillBeRetired(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.release("v1", "billing", "reports")
	testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.run("", "schedules", "list").out, "reports") }, "it declares")
	if r := s.run("", "schedules", "apply", s.file("hand.yaml", "- {name: by-hand, every: 1h, task: echo}\n")); r.code != exitFine {
		t.Fatalf("%+v", r)
	}
	head := "namespace: " + s.ns + "\nredis: {url: " + s.url + "}\n"
	api, overAPI := s.throughAPI(t, nil), testEnv("ONBEAT_TOKEN", apiToken)
	for name, x := range map[string]struct {
		file string
		want []string
	}{
		"one is left out":  {head + "schedules: [{name: billing, every: 1h, task: echo}]\n", []string{"reports"}},
		"an empty list":    {head + "schedules: []\n", []string{"billing", "reports"}},
		"without the key":  {head, nil},
		"a list by itself": {"- {name: billing, every: 1h, task: echo}\n", nil},
	} {
		file := s.file("new.yaml", x.file)
		var found checked
		s.json(&found, "check", "--against-live", file)
		var plans []admin.Plan
		if r := s.run("", "schedules", "apply", "--dry-run", "--json", file); json.Unmarshal([]byte(r.out), &plans) != nil { // stderr notes that no instance handles echo
			t.Fatalf("%s: %+v", name, r)
		}
		plans = slices.DeleteFunc(plans, func(p admin.Plan) bool { return p.Result != willRetire })
		var over checked
		if r := runWith(t.Context(), overAPI, "", "check", "--against-live", "--json", "--api", api, file); json.Unmarshal([]byte(r.out), &over) != nil {
			t.Fatalf("%s: %+v", name, r)
		}
		for _, got := range [][]admin.Plan{found.Retired, plans, over.Retired} {
			var names []string
			for _, p := range got {
				if names = append(names, p.Name); p.Result != willRetire || p.DeclaredBy != "v1" {
					t.Errorf("%s: %+v", name, p)
				}
			}
			if !slices.Equal(names, x.want) {
				t.Errorf("%s: %v, want %v", name, names, x.want)
			}
		}
		out := s.must("check", "--against-live", file)
		if strings.Count(out, willRetire) != len(x.want) || strings.Contains(out, "empty") != (len(x.want) == 2) {
			t.Errorf("%s: %s", name, out)
		}
	}
	file := s.file("x.yaml", head+"schedules: []\n")
	if r := runWith(t.Context(), testEnv("ONBEAT_API", api), "", "check", file); r.code != exitFine || strings.Contains(r.out, willRetire) {
		t.Errorf("without the flag: %+v", r)
	}
	for _, flag := range []string{"--redis=" + s.url, "--archive=sqlite://x", "--api=" + api, "--token-file=x", "--plain-http"} {
		s.fails(exitAsked, []string{"check", flag, file}, "--against-live")
	}
}

func TestSchedulesShow_saysWhoDeclaredAndWhoRetired(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	has := func(part string, args ...string) {
		t.Helper()
		testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.run("", args...).out, part) }, "onbeat %v says %q", args, part)
	}
	s.release("v2", "billing")
	has("declared by v2", "schedules", "show", "billing")
	s.release("v2b", "billing") // it declares the same, and writes nothing
	has("declared by v2b", "schedules", "show", "billing")
	has(`"release":"v2b"`, "schedules", "list", "--json")
	s.release("v3", "other")
	has("retired by v3, declared by v2", "schedules", "show", "billing")
	var v struct {
		Name, Origin, Release string
		Retired               struct {
			At      time.Time
			Release string
		}
		Upcoming []admin.Slot
	}
	s.json(&v, "schedules", "show", "billing")
	if v.Name != "billing" || v.Origin != "declared" || v.Release != "v2" || v.Retired.Release != "v3" || v.Retired.At.IsZero() || len(v.Upcoming) != 0 {
		t.Errorf("%+v", v)
	}
	if out := s.must("schedules", "list"); strings.Contains(out, "billing") {
		t.Errorf("it is listed though it is retired:\n%s", out)
	}
	if out := s.must("schedules", "list", "--retired"); !strings.Contains(out, "billing") || !strings.Contains(out, "retired by v3") || strings.Contains(out, "other") {
		t.Errorf("the list of the retired ones:\n%s", out)
	}
	if _, kinds := s.kinds(); kinds["retired"] != "v3 " {
		t.Errorf("the status names no retired schedule: %v", kinds)
	}
	for _, args := range [][]string{{"schedules", "trigger", "billing"}, {"schedules", "pause", "billing"}, {"preview", "billing"}} {
		s.fails(1, args, `schedule "billing": not found`, "retired by v3")
	}
}

func TestSchedules_saysWhatBecomesOfAChangeOfADeclaredOne(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.release("v2", "billing")
	testredis.Eventually(t, 30*time.Second, func() bool { return s.run("", "schedules", "show", "billing").code == exitFine }, "it is not declared")
	apply := func(every string) ran {
		return s.run("", "schedules", "apply", s.file("s.yaml", "[{name: billing, every: "+every+", task: echo}, {name: mine, every: "+every+", task: echo}]\n"))
	}
	notes := func(r ran) (n int) {
		for line := range strings.Lines(r.err) {
			if strings.Contains(line, "v2") && strings.Contains(line, "billing") {
				n++
			}
		}
		return n
	}
	if r := apply("2h"); r.code != exitFine || notes(r) != 1 {
		t.Errorf("apply: %+v", r)
	}
	if r := apply("2h"); r.code != exitFine || notes(r) != 0 {
		t.Errorf("apply that changes nothing: %+v", r)
	}
	if r := s.run("", "schedules", "delete", "billing", "mine"); r.code != exitFine || notes(r) != 1 {
		t.Errorf("delete: %+v", r)
	}
}
