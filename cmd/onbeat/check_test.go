package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const shopConfig = `namespace: shop
redis: {url: "redis://app:${PW}@redis.invalid:6379/0"}
schedules:
  - {name: warm-cache, every: 1s, task: echo}
  - {name: on-the-hour, every: 1h, start: aligned, task: echo}
  - name: report
    cron: "30 2 * * *"
    timezone: Asia/Seoul
    task: http
    payload: {url: "https://shop.example/report"}
`

func TestCheck_saysWhatIsDueNext(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("shop.yaml", shopConfig)
	now := time.Now()
	r := runWith(t.Context(), testEnv("PW", "hunter2"), "", "check", file)
	if r.code != exitFine || r.err != "" || !strings.HasPrefix(r.out, "OK "+file+": 3 schedules\n") || strings.Contains(r.out, "hunter2") {
		t.Fatalf("%+v", r)
	}
	if row := cells(r.out, "warm-cache"); strings.Join(row, " ") != "warm-cache every 1s the grid begins when the schedule is made" {
		t.Errorf("%q", row)
	}
	var found checked
	r = runWith(t.Context(), testEnv("PW", "hunter2"), "", "check", "--json", file)
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != exitFine {
		t.Fatalf("%v: %+v", err, r)
	}
	if !found.OK || len(found.Schedules) != 3 || len(found.Problems)+len(found.Warnings) != 0 || !found.Schedules[0].Next.IsZero() {
		t.Errorf("%+v", found)
	}
	if next := found.Schedules[1].Next; !next.Equal(now.Truncate(time.Hour).Add(time.Hour)) && !next.Equal(time.Now().Truncate(time.Hour).Add(time.Hour)) {
		t.Errorf("on the hour: %v", next)
	}
	if next := found.Schedules[2].Next; next.Format("15:04 -07:00") != "02:30 +09:00" || !next.After(now) || next.After(now.Add(25*time.Hour)) {
		t.Errorf("at half past two in Seoul: %v", next)
	}
}

func TestCheck_listsEachProblem(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("x.yaml", "lease: 1ms\nschedules:\n  - {name: a, every: 1s, task: htpt}\n  - name: b\n    cron: 61 * * * *\n    task: http\n")
	r := runWith(t.Context(), testEnv(), "", "check", file)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	want := []string{`:1: lease "1ms": `, `:3: schedules[0].task "htpt": `, `:4: schedules[1].payload: `, `:5: schedules[1].cron minute "61":`, "warning: " + file, "4 problems"}
	if r.code != exitFailed || r.err != "" || len(lines) != len(want) {
		t.Fatalf("%+v", r)
	}
	for i, line := range lines {
		if !strings.HasPrefix(strings.TrimPrefix(line, file), want[i]) {
			t.Errorf("line %d: %q, want %q", i, line, want[i])
		}
	}
	var found checked
	r = runWith(t.Context(), testEnv(), "", "check", "--json", file)
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != exitFailed || found.OK || len(found.Problems) != 4 {
		t.Fatalf("%v: %+v", err, r)
	}
	if p := found.Problems[0]; p.Line != 1 || p.Field != "lease" || p.Value != "1ms" || p.Reason == "" || p.Hint == "" {
		t.Errorf("%+v", p)
	}
}

// The tokens may be on another machine: check warns, and serve refuses.
func TestCheck_warnsOfTokensThatAreNotHere(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("x.yaml", "namespace: shop\napi:\n  tokens:\n    - {name: a, role: viewer, token_file: nowhere}\n    - {name: b, role: admin, token: '${NOT_SET}'}\n")
	r := runWith(t.Context(), testEnv(), "", "check", file)
	if r.code != exitFine || strings.Count(r.out, "warning:") != 2 || !strings.Contains(r.out, `nowhere"`) || !strings.Contains(r.out, `${NOT_SET}"`) {
		t.Errorf("%+v", r)
	}
}

func TestCheck_exits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i, c := range []struct {
		text, want string
		code       int
	}{
		{"a: b: c\n", "x.yaml:1: ", exitFailed},
		{"", "x.yaml: ", exitFailed},
		{shopConfig, `shop.yaml:2: redis.url "${PW}": `, exitFine}, // PW is not set, here
		{"namespace: x\nschedules:\n  - {name: a, every: 1s, task: http, payload: {url: 'http://h', body: '${T}'}}\n", `x.yaml:3: schedules[0].payload "${T}": `, exitFailed},
		{"- {name: a, every: 1s, task: http, payload: {url: 'http://h', body: '${T}'}}\n", ": 1 schedule\n", exitFine}, // only the instance knows which variables it passes
		{"namespace: x\nschedules:\n  - {name: a, cron: '0 0 * * *', until: 2020-01-01T00:00:00Z, task: echo}\n", `x.yaml:3: schedules[0].until "2020-01-01T00:00:00Z": `, exitFine},
		{"- {name: a, every: 1s, task: invoice.send}\n", ": 1 schedule\n", exitFine}, // another program has the handler
		{"- {name: a, every: 1s, task: invoice.send}\n- {name: a, every: 1s, task: http}\n", "2 problems", exitFailed},
	} {
		name := "x.yaml"
		if c.text == shopConfig {
			name = "shop.yaml"
		}
		if r := runWith(t.Context(), testEnv(), "", "check", s.file(name, c.text)); r.code != c.code || !strings.Contains(r.out, c.want) || r.err != "" {
			t.Errorf("%d: %+v, want exit %d and %q", i, r, c.code, c.want)
		}
	}
	s.failed(runWith(t.Context(), testEnv(), "", "check", filepath.Join(t.TempDir(), "none.yaml")), exitAsked, "no file", "none.yaml")
	s.failed(runWith(t.Context(), testEnv(), "", "check"), exitAsked, "no argument", "<file>")
	if r := runWith(t.Context(), testEnv(), "namespace: x\nlease: 5\n", "check", "-"); r.code != exitFailed || !strings.HasPrefix(r.out, "stdin:2: lease") {
		t.Errorf("stdin: %+v", r)
	}
}

// A file that serve with the same flags would refuse is not OK.
func TestCheck_refusesWhatServeRefuses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("x.yaml", "exec: {grace: 1s}\nlease: 1ms\nschedules:\n  - {name: a, every: 1s, task: exec, payload: {command: [ls]}}\n")
	r := runWith(t.Context(), testEnv(), "", "check", "--namespace", "x", file)
	if r.code != exitFailed || !strings.HasPrefix(r.out, file+":1: exec: ") || !strings.Contains(r.out, "--allow-exec") || !strings.Contains(r.out, file+`:4: schedules[0].task "exec": `) {
		t.Errorf("%+v", r)
	}
	file = s.file("y.yaml", "schedules:\n  - {name: a, every: 1s, task: exec, payload: {command: [ls]}}\n")
	if r := runWith(t.Context(), testEnv("ONBEAT_NAMESPACE", "x"), "", "check", "--allow-exec", file); r.code != exitFine || !strings.HasPrefix(r.out, "OK ") {
		t.Errorf("%+v", r)
	}
	var found checked
	r = runWith(t.Context(), testEnv(), "", "check", "--json", "--allow-exec", file)
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || !found.OK || len(found.Warnings) != 1 || found.Warnings[0].Field != "namespace" {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestCheck_showsNoPassword(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, text := range []string{"namespace: redis://u:hunter2@h\n", "redis: {url: 'redis://u:hunter2@h:99999'}\n", "redis: redis://u:hunter2@h\n"} {
		for _, flag := range []string{"--json=false", "--json"} {
			if r := runWith(t.Context(), testEnv(), "", "check", flag, s.file("x.yaml", text)); r.code != exitFailed || strings.Contains(fmt.Sprint(r), "hunter2") {
				t.Errorf("%q: %+v", text, r)
			}
		}
	}
}
