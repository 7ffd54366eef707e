package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
)

// kinds are the kinds of the lines of a status, with their names.
func (s *shell) kinds() (code int, kinds map[string]string) {
	s.Helper()
	r := s.run("", "status", "--json")
	var got admin.Status
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		s.Fatalf("%v: %+v", err, r)
	}
	kinds = map[string]string{}
	for _, l := range got.Trouble {
		kinds[l.Kind] += l.Name + " "
		if l.Show == "" || l.Text == "" || strings.Contains(l.Text, "\n") {
			s.Errorf("%+v", l)
		}
	}
	return r.code, kinds
}

// An operator who looks at one place sees each job that does not do what it should, and sees nothing else.
func TestStatus_namesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if code, kinds := s.kinds(); code != exitFailed || kinds[admin.NoLeader] == "" {
		t.Errorf("without an instance: %d, %v", code, kinds)
	}
	s.serving("--release", "v1")
	s.must("schedules", "apply", s.file("good.yaml", "- {name: good, every: 1s, task: echo}\n"))
	testredis.Eventually(t, 30*time.Second, func() bool {
		code, kinds := s.kinds()
		return code == 0 && len(kinds) == 0
	}, "all is well")
	if out := s.must("status"); !strings.Contains(out, "1 of 1 schedules well") {
		t.Errorf("%s", out)
	}

	s.run("", "schedules", "apply", s.file("bad.yaml", `
- {name: sad, every: 1s, task: http, max_attempts: 1, payload: {url: 'http://127.0.0.1:1/', timeout: 1s}}
- {name: slow, every: 1s, task: sleep, payload: {for: 1h}}
- {name: typo, every: 1s, task: ehco}
- {name: later, every: 1h, task: echo}
`))
	s.must("schedules", "pause", "later")
	testredis.Eventually(t, time.Minute, func() bool {
		code, kinds := s.kinds()
		return code == exitFailed && len(kinds) == 4 && kinds["failing"] == "sad " && kinds["hung"] == "slow " && kinds["unhandled"] == "typo " && kinds["dead"] == "http "
	}, "each is named")
	if out := s.must("schedules", "list"); !strings.Contains(out, "failing for") || !strings.Contains(out, "hung for") || !strings.Contains(out, "unhandled for") {
		t.Errorf("the list says something else:\n%s", out)
	}
}

// Each command that the status shows is one that the program takes.
func TestStatus_showsCommandsToPaste(t *testing.T) {
	t.Parallel()
	a := newApp(&globals{API: "http://127.0.0.1:1"}, testEnv(), nil, nil, nil)
	for _, show := range []string{"onbeat doctor", "onbeat tasks failures"} {
		args := strings.Fields(a.pasteable(show))[1:]
		parses(t, args)
		if slices.Contains(args, "--api") != (show != "onbeat doctor") {
			t.Errorf("%s: %v", show, args)
		}
	}
}

// A typing error in a type is told at once, or refused.
func TestEnqueue_namesATypeThatNoInstanceHandles(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if r := s.run("", "enqueue", "echo", "--strict", "--id", "nobody"); r.code != exitFailed || r.out != "" { // no instance runs
		t.Errorf("%+v", r)
	}
	s.serving("--release", "v1")
	if r := s.run("", "enqueue", "htpp", "--id", "late"); r.code != 0 || r.out != "late\n" || !strings.Contains(r.err, `"http" is handled`) {
		t.Errorf("%+v", r)
	}
	if r := s.run(`{"type":"htpp"}`+"\n"+`{"type":"echo"}`+"\n", "enqueue", "--file", "-"); r.code != 0 || strings.Count(r.err, `"http" is handled`) != 1 {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "enqueue", "htpp", "--strict", "--id", "strict"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, `"http" is handled`) {
		t.Errorf("%+v", r)
	}
	s.fails(1, []string{"tasks", "show", "strict"}, "not found")
	if r := s.run("", "enqueue", "echo", "--strict", "--queue", "nowhere"); r.code != 0 { // the instance takes from all queues
		t.Errorf("%+v", r)
	}
}

// A status that could not be told is not green.
func TestStatus_withoutRedis(t *testing.T) {
	t.Parallel()
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", "redis://127.0.0.1:1", "ONBEAT_NAMESPACE", "x"), "", "status")
	if r.code != exitNoRedis || r.out != "" {
		t.Errorf("%+v", r)
	}
}
