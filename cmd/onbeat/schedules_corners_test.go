package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A pattern is not about folders: * is any text, also a slash.
func TestSchedules_aPatternMatchesSlashes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo}\n- {name: team/a, every: 1h, task: echo}\n- {name: team/b, every: 1h, task: echo}"))
	if out := s.must("schedules", "pause", "--all", "--match", "*", "--dry-run"); out != "3 schedules would be paused\n  a\n  team/a\n  team/b\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "pause", "--all", "--match", "team?*"); out != "paused team/a\npaused team/b\n" {
		t.Errorf("%q", out)
	}
}

// A schedule that a newer release wrote is left alone, named, and keeps no other from being changed.
func TestSchedules_bulkGoesOnBesideAnUnreadableOne(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo}"))
	if err := s.rdb.HSet(t.Context(), "onbeat:{"+s.ns+"}:schedules", "broken", `{"v":99}`).Err(); err != nil {
		t.Fatal(err)
	}
	r := s.run("", "schedules", "pause", "--all")
	if r.code != exitFailed || r.out != "paused a\n" || !strings.Contains(r.err, "newer release") {
		t.Errorf("%+v", r)
	}
}

// A command tells the error of one name, and does the others.
func TestCommands_doTheOtherNamesToo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "mine.own", "--id", "z1", "--in", "1h")
	s.must("enqueue", "mine.own", "--id", "z2", "--in", "1h")
	r := s.run("", "tasks", "cancel", "nope", "z1", "neither", "z2")
	if r.code != exitFailed || r.out != "cancelled z1\ncancelled z2\n" || !strings.Contains(r.err, `task "nope": not found`) || !strings.Contains(r.err, `task "neither": not found`) {
		t.Errorf("%+v", r)
	}
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo}"))
	if r := s.run("", "schedules", "pause", "nope", "a", "--json"); r.code != exitFailed || !strings.Contains(r.out, `"name":"a","result":"paused"`) {
		t.Errorf("%+v", r)
	}
}

// The namespace that a file names is where its schedules go, or the command is refused.
func TestSchedulesApply_keepsToTheNamespaceOfTheFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("s.yaml", "namespace: other\nschedules: [{name: a, every: 1h, task: echo}]\n")
	s.fails(2, []string{"schedules", "apply", file}, `namespace "other": ONBEAT_NAMESPACE says`)
	s.fails(2, []string{"schedules", "apply", "-c", s.file("c.yaml", "lease: 5s\n"), file}, `namespace "other": the schedules would go to namespace "`+s.ns)
	elsewhere := s.file("elsewhere.yaml", "redis: {url: 'redis://127.0.0.1:1'}\nschedules: [{name: a, every: 1h, task: echo}]\n")
	r := runWith(t.Context(), testEnv(), "", "schedules", "apply", "-n", s.ns, "-c", s.file("here.yaml", "redis: {url: '"+s.url+"'}\n"), elsewhere)
	if r.code != exitAsked || !strings.Contains(r.err, `redis.url "redis://127.0.0.1:1": the config of -c says another, or none`) {
		t.Errorf("%+v", r)
	}
	if out := s.must("schedules", "apply", "-n", s.ns, file); out != "made a\n" {
		t.Errorf("%q", out)
	}
	file = s.file("own.yaml", "namespace: "+s.ns+"\nschedules: [{name: b, every: 1h, task: echo}]\n")
	r = runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", "schedules", "apply", file)
	if r.code != exitFine || r.out != "made b\n" {
		t.Errorf("a file that names its namespace needs no flag: %+v", r)
	}
}

func TestBackfill_saysWhatItAddedBeforeItWasInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("", "schedules", "apply", s.file("s.yaml", "- {name: a, every: 1s, task: echo}\n"))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan ran, 1)
	go func() { ended <- runWith(ctx, s.env(), "", "schedules", "backfill", "a", "--from", "27h") }() // about a hundred batches
	tasks := queue.Partition{Namespace: s.ns}.Keys().Tasks
	testredis.Eventually(t, patience, func() bool { return s.rdb.HLen(t.Context(), tasks).Val() > queue.MaxBatch }, "two batches are there")
	interrupt()
	s.failed(<-ended, exitFailed, "interrupted", "interrupted", "of 972")
}

// A second backfill that is asked for again runs the slots whose run failed for good, too.
func TestBackfill_againRunsWhatFailed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serving("--release", "v1")
	s.must("schedules", "apply", s.file("s.yaml", "- {name: sad, every: 1h, task: http, max_attempts: 1, payload: {url: 'http://127.0.0.1:1/', timeout: 1s}}"))
	if out := s.must("schedules", "backfill", "sad", "--from", "5h", "--dry-run"); !strings.HasPrefix(out, "would add 5 of 5 slots") {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "backfill", "sad", "--from", "5h"); !strings.HasPrefix(out, "added 5 of 5 slots") {
		t.Fatalf("%q", out)
	}
	testredis.Eventually(t, patience, func() bool { return strings.Count(s.must("tasks", "list", "--state", "dead"), "+backfill") == 5 }, "all five failed")
	if out := s.must("schedules", "backfill", "sad", "--from", "5h"); !strings.Contains(out, "added 0 of 5 slots\nan earlier backfill added 5") {
		t.Errorf("%q", out)
	}
	if out := s.must("schedules", "backfill", "sad", "--from", "5h", "--again"); !strings.HasPrefix(out, "added 5 of 5 slots") {
		t.Errorf("%q", out)
	}
}

// With --failed only the slots whose work was not done run, and none from before the schedule was made.
func TestBackfill_runsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serving("--release", "v1")
	made := time.Now()
	s.must("schedules", "apply", s.file("s.yaml", "- {name: sad, every: 500ms, task: http, max_attempts: 1, payload: {url: 'http://127.0.0.1:1/', timeout: 1s}}\n- {name: glad, every: 500ms, task: echo}"))
	testredis.Eventually(t, patience, func() bool { return strings.Count(s.must("tasks", "list", "--state", "dead"), "sad@") > 3 }, "some failed")
	s.must("schedules", "pause", "sad")
	s.must("schedules", "pause", "glad")
	var sad, ran admin.Backfilled
	s.json(&sad, "schedules", "backfill", "sad", "--from", "1h", "--failed", "--dry-run")
	if n := sad.Outcomes[audit.Failed]; sad.Slots < 4 || int64(sad.Slots) != n || len(sad.Outcomes) != 1 || sad.First.Before(made.Add(-time.Second)) || sad.Last.Before(sad.First) {
		t.Errorf("%+v", sad)
	}
	if s.json(&ran, "schedules", "backfill", "sad", "--from", "1h", "--failed"); ran.Added != sad.Added {
		t.Errorf("%+v ran, and it said %+v", ran, sad)
	}
	if out := s.must("schedules", "backfill", "glad", "--from", "1h", "--failed"); !strings.HasPrefix(out, "added 0 of 0 slots") {
		t.Errorf("%q", out)
	}
}

// The list says in the words of the status how a schedule is.
func TestSchedulesList_saysHowEachIs(t *testing.T) {
	t.Parallel()
	h := newAuditHouse(t)
	h.beatEvery(time.Second, 1, "beat") // the list may take hundreds of milliseconds on a busy machine
	if _, out := h.command("schedules", "list"); !strings.Contains(out, "done") || !strings.Contains(out, "well") {
		t.Errorf("right after it ran:\n%s", out)
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		_, out := h.command("schedules", "list")
		return strings.Contains(out, "overdue for")
	}, "nothing runs any more, and the list says so")
}

// Files for TLS in the config are not dropped where the URL comes from elsewhere.
func TestConnect_refusesAPlainURLBesideTLSFiles(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "namespace: "+s.ns+"\nredis: {tls_ca: ca.pem}\n")
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", "tasks", "list", "-c", file)
	if r.code != exitAsked || !strings.Contains(r.err, `redis.tls_ca "ca.pem": the URL of Redis does not use TLS`) {
		t.Errorf("%+v", r)
	}
}
