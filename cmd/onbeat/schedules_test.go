package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
)

const applied = `
- name: warm-cache
  every: 1h
  task: echo
- name: nightly
  cron: "30 2 * * *"
  timezone: Europe/Berlin
  task: http
  payload: {url: "http://127.0.0.1:1/x"}
  queue: low
  priority: low
  timeout: 5s
  max_attempts: 4
  backoff: 2s
`

func TestSchedules_applySaysWhatItDid(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("s.yaml", applied)
	if out := s.must("schedules", "apply", file); out != "made warm-cache\nmade nightly\n" {
		t.Errorf("%q", out)
	}
	file = s.file("s.yaml", strings.Replace(applied, "every: 1h", "every: 2h", 1))
	if out := s.must("schedules", "apply", file); out != "changed warm-cache\nunchanged nightly\n" {
		t.Errorf("%q", out)
	}
	r := s.run("schedules:\n  - {name: nightly, every: 1d, task: mine.own}\n", "schedules", "apply", "-", "--json")
	if r.code != 0 || r.out != `[{"name":"nightly","result":"changed"}]`+"\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	s.failed(s.run("- {name: x, evry: 1s, task: echo}\n", "schedules", "apply", "-"), 2, "list", "stdin:1: schedules[0].evry: unknown field (did you mean every?)")
	s.failed(s.run("- {name: ok, every: 1s, task: echo}\n- {name: x, every: 0s, task: echo}\n", "schedules", "apply", "-"), 2, "list", `stdin:2: schedules[1].every "0s": zero`)
	if out := s.must("schedules", "list"); cells(out, "ok") != nil {
		t.Errorf("half of a bad file was applied:\n%s", out)
	}
}

func TestSchedules_applyDryRunShowsTheDifference(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("s.yaml", applied)
	if out := s.must("schedules", "apply", "--dry-run", file); !strings.HasPrefix(out, "would make warm-cache: every 1h") || !strings.Contains(out, "\nwould make nightly: cron ") {
		t.Errorf("%q", out)
	}
	s.nothingWritten()
	s.must("schedules", "apply", file)
	file = s.file("s.yaml", strings.NewReplacer("every: 1h", "every: 2h", "timeout: 5s", "timeout: 90s").Replace(applied))
	if out, want := s.must("schedules", "apply", "--dry-run", file), "would change warm-cache\n  every: 1h → 2h\nwould change nightly\n  timeout: 5s → 1m30s\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	r := s.run(strings.Replace(applied, "every: 1h", "every: 3h", 1), "schedules", "apply", "-", "--dry-run", "--json")
	if r.code != 0 || r.out != `[{"name":"warm-cache","result":"would change","changes":[{"field":"every","from":"1h","to":"3h"}]},{"name":"nightly","result":"unchanged"}]`+"\n" {
		t.Errorf("%+v", r)
	}
	if out := s.must("schedules", "apply", s.file("s.yaml", applied)); out != "unchanged warm-cache\nunchanged nightly\n" {
		t.Errorf("the dry run changed something: %q", out)
	}
	s.failed(s.run("- {name: x, every: 0s, task: echo}\n", "schedules", "apply", "--dry-run", "-"), 2, "a bad file", `stdin:1: schedules[0].every "0s": zero`)
}

func TestSchedules_applyDryRunSaysWhoDeclaresItAgain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.release("v2", "billing")
	testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(s.run("", "schedules", "list").out, "billing") }, "billing is declared")
	r := s.run("- {name: billing, every: 2h, task: echo}\n", "schedules", "apply", "--dry-run", "-")
	if want := "would change billing, until the next leader of v2 declares it again\n  every: 1h → 2h\n"; r.code != 0 || r.out != want {
		t.Errorf("%+v, want %q", r, want)
	}
}

func TestSchedules_listAndShow(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.must("schedules", "list"); out != "no schedules in "+s.ns+"\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "list", "--json"); strings.Join(strings.Fields(out), "") != `{"items":[]}` {
		t.Errorf("%q", out)
	}
	s.must("schedules", "apply", s.file("s.yaml", applied))
	out := s.must("schedules", "list")
	if head := cells(out, "NAME"); strings.Join(head, " ") != "NAME WHEN TASK NEXT LAST RUN OUTCOME HEALTH FROM" {
		t.Errorf("head %v", head)
	}
	if row := strings.Join(cells(out, "nightly"), " "); !strings.HasPrefix(row, `nightly cron "30 2 * * *" Europe/Berlin http in `) || !strings.HasSuffix(row, "- - well applied") {
		t.Errorf("row %q", row)
	}
	out = s.must("schedules", "show", "nightly")
	for _, part := range []string{"when          cron", "priority      low", "timeout       5s", "max attempts  4", "backoff       2s up to 1h", "next slots", "T02:30:00+0"} {
		if !strings.Contains(out, part) {
			t.Errorf("show does not say %q:\n%s", part, out)
		}
	}
	var v struct {
		Name     string
		Origin   string
		Upcoming []admin.Slot
	}
	s.json(&v, "schedules", "show", "nightly")
	if v.Name != "nightly" || v.Origin != "applied" || len(v.Upcoming) != 5 {
		t.Errorf("%+v", v)
	}
}

func TestSchedules_pauseResumeTriggerDelete(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", applied))
	for _, c := range []struct{ args, want string }{
		{"pause warm-cache nightly", "paused warm-cache\npaused nightly\n"},
		{"pause nightly", "already paused nightly\n"},
		{"resume nightly", "resumed nightly\n"},
		{"resume nightly", "not paused nightly\n"},
		{"delete nightly", "deleted nightly\n"},
		{"pause warm-cache --json", `[{"name":"warm-cache","result":"already paused"}]` + "\n"},
	} {
		if out := s.must(append([]string{"schedules"}, strings.Fields(c.args)...)...); out != c.want {
			t.Errorf("%s: %q, want %q", c.args, out, c.want)
		}
	}
	if out := s.must("schedules", "list"); !strings.Contains(out, "paused for ") {
		t.Errorf("%s", out)
	}
	s.must("schedules", "pause", "warm-cache", "--reason", "the database moves")
	if out := s.must("schedules", "list"); !strings.HasSuffix(strings.Join(cells(out, "warm-cache"), " "), ": the database moves applied") {
		t.Errorf("%s", out)
	}
	if out := s.must("schedules", "show", "warm-cache"); !strings.Contains(out, ": the database moves\n") {
		t.Errorf("%s", out)
	}
	s.fails(2, []string{"schedules", "pause", "warm-cache", "--reason", "a\nb"}, `reason "a\nb": `)
	for _, verb := range []string{"show", "pause", "resume", "trigger", "delete"} {
		s.fails(1, []string{"schedules", verb, "warm-cahce"}, `schedule "warm-cahce": not found`, "did you mean warm-cache?")
	}
	s.fails(2, []string{"schedules", "trigger", "warm-cache", "-p", `{"a":1,"a":2}`}, "payload.a: appears twice")
	s.fails(1, []string{"schedules", "backfill", "nobody", "--from", "1h"}, `schedule "nobody": not found`)

	id := strings.TrimSpace(s.must("schedules", "trigger", "warm-cache", "--payload", `{"by":"hand"}`))
	var l admin.Task
	s.json(&l, "tasks", "show", id)
	if l.Schedule != "warm-cache" || string(l.Payload) != `{"by":"hand"}` {
		t.Errorf("%+v", l)
	}
}

func TestSchedules_backfillAddsEachSlotOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, start: aligned, task: mine.own}"))
	args := []string{"schedules", "backfill", "a", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T09:30:00Z"}
	if out := s.must(args...); out != "added 10 of 10 slots\n" {
		t.Errorf("%q", out)
	}
	var v struct{ Slots, Added int }
	s.json(&v, args...)
	if v.Slots != 10 || v.Added != 0 {
		t.Errorf("%+v", v)
	}
	s.fails(2, []string{"schedules", "backfill", "a", "--from", "1h", "--to", "2h"}, "from")
	s.fails(2, []string{"schedules", "backfill", "a", "--from", "1970-01-01T00:00:00Z"}, "slots, the limit is 100000")
}

func TestSchedules_applyNotesWhatNobodyHandles(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serving("--release", "v1")
	r := s.run("- {name: a, every: 1h, task: mine.own}", "schedules", "apply", "-")
	if r.code != 0 || !strings.Contains(r.err, `no instance handles "mine.own"`) {
		t.Errorf("%+v", r)
	}
}

func TestEvents_showWhatChanged(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", applied))
	s.must("schedules", "pause", "nightly")
	if out := s.must("events"); strings.Count(out, "schedule made") != 2 || !strings.Contains(out, "schedule=nightly") {
		t.Errorf("%s", out)
	}
	var list admin.List[admin.Event]
	s.json(&list, "events", "--limit", "1")
	if len(list.Items) != 1 || list.Items[0].Event != "schedule paused" || list.Items[0].Fields["schedule"] != "nightly" {
		t.Errorf("%+v", list)
	}
	s.json(&list, "events", "--since", time.Now().Add(time.Hour).Format(time.RFC3339))
	if len(list.Items) != 0 {
		t.Errorf("of the future: %+v", list)
	}
}

func TestEvents_followGoesOn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", applied))
	p := startProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, "events", "--follow", "--json")
	p.says(`"event":"schedule made"`)
	s.must("schedules", "pause", "nightly")
	p.says(`"event":"schedule paused"`)
	for line := range strings.Lines(p.out.String()) {
		if !strings.HasPrefix(line, `{"id":`) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("not a JSON value a line: %q", line)
		}
	}
}

func TestEvents_followWaitsOutAnOutage(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes")
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL()}
	ctx, stop := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"events", "--follow"}, s.env(), strings.NewReader(""), &out, &errs) }()
	says := func(b *lockedBuffer, text string) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool { return strings.Contains(b.String(), text) }, "never says %q", text)
	}
	apply := func(name string) {
		t.Helper()
		if r := s.run("- {name: "+name+", every: 1h, task: echo}", "schedules", "apply", "-"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	apply("before")
	says(&out, "schedule=before")
	srv.Stop()
	says(&errs, "(trying again)")
	srv.Restart()
	apply("after")
	says(&out, "schedule=after")
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if n := strings.Count(errs.String(), "\n"); n > 2 {
		t.Errorf("said %d lines: %s", n, errs.String())
	}
}

func TestSchedules_byFilter(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "- {name: billing.a, every: 1h, task: echo}\n- {name: billing.b, every: 1h, task: http, payload: {url: 'http://h'}}\n- {name: mail, every: 1h, task: echo}"))
	for _, c := range []struct{ args, want string }{
		{"pause --all --match billing.* --dry-run", "2 schedules would be paused\n  billing.a\n  billing.b\n"},
		{"pause --all --match billing.*", "paused billing.a\npaused billing.b\n"},
		{"resume --all --task http", "resumed billing.b\n"},
		{"delete --all --match none", ""},
		{"delete --all", "deleted billing.a\ndeleted billing.b\ndeleted mail\n"},
	} {
		if out := s.must(append([]string{"schedules"}, strings.Fields(c.args)...)...); out != c.want {
			t.Errorf("%s: %q, want %q", c.args, out, c.want)
		}
	}
	for args, want := range map[string]string{
		"pause": "which schedules?", "pause a --all": "which schedules?", "pause a --match b": "--match works only with --all", "pause a --dry-run": "--dry-run works only with --all",
		"pause --all --match [": "not a pattern",
	} {
		s.fails(2, append([]string{"schedules"}, strings.Fields(args)...), want)
	}
}
