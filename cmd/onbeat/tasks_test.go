package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestTasks_listPagesAndFilters(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.must("tasks", "list"); out != "0 running, 0 waiting (0 overdue, 0 for their key), 0 retrying or planned, 0 dead, 0 done and kept\n" {
		t.Errorf("%q", out)
	}
	for i := range 5 {
		s.must("enqueue", "job", "--id", fmt.Sprintf("job-%d", i), "--in", fmt.Sprintf("%dh", i+1))
	}
	s.must("enqueue", "other", "--id", "now", "--queue", "low")
	out := s.must("tasks", "list")
	if head := strings.Join(cells(out, "ID"), " "); head != "ID TYPE STATE WHEN ATTEMPTS QUEUE NOTE" {
		t.Errorf("head %q", head)
	}
	if row := strings.Join(cells(out, "job-0"), " "); !strings.HasPrefix(row, "job-0 job planned due in 59m") || !strings.HasSuffix(row, "0/10 default") {
		t.Errorf("row %q", row)
	}
	if !strings.Contains(out, "1 waiting (0 overdue, 0 for their key), 5 retrying or planned") {
		t.Errorf("%s", out)
	}
	var ids []string
	after := ""
	for range 10 {
		var page admin.List[admin.Task]
		s.json(&page, "tasks", "list", "--state", "planned", "--type", "job", "--limit", "2", "--after", after)
		for _, l := range page.Items {
			ids = append(ids, l.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "job-0 job-1 job-2 job-3 job-4" {
		t.Errorf("pages: %s", got)
	}
	var page admin.List[admin.Task]
	s.json(&page, "tasks", "list", "--queue", "low")
	if len(page.Items) != 1 || page.Items[0].ID != "now" {
		t.Errorf("%+v", page)
	}
	if out := s.must("tasks", "list", "--limit", "1", "--state", "planned"); !strings.Contains(out, "more: --after ") {
		t.Errorf("%s", out)
	}
}

func TestTasks_cancelAndDelete(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "job", "--id", "a", "--payload", `"text"`)
	s.must("enqueue", "job", "--id", "b")
	if out := s.must("tasks", "cancel", "a", "b"); out != "cancelled a\ncancelled b\n" {
		t.Errorf("%q", out)
	}
	for _, verb := range []string{"show", "cancel", "delete", "retry"} {
		s.fails(1, []string{"tasks", verb, "a"}, `task "a": not found`)
	}
	s.must("enqueue", "job", "--id", "c")
	s.fails(1, []string{"tasks", "retry", "c"}, `task "c" is waiting, not dead`)
	if out := s.must("tasks", "delete", "c", "--json"); out != `[{"name":"c","result":"deleted"}]`+"\n" {
		t.Errorf("%q", out)
	}
}

// A task with a damaged record is shown as damaged, and can be deleted.
func TestTasks_unreadable(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "job", "--id", "bad", "--in", "1h")
	s.must("enqueue", "job", "--id", "good", "--in", "1h")
	keys := queue.Partition{Namespace: s.ns}.Keys()
	rdb := s.rdb
	for _, err := range []error{
		rdb.HSet(t.Context(), keys.Tasks, "bad", "?").Err(),
		rdb.ZRem(t.Context(), keys.Due(queue.LaneOf(task.New("job", nil))), "bad").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.fails(1, []string{"tasks", "show", "bad"}, "record")
	if err := rdb.ZAdd(t.Context(), keys.Dead, redis.Z{Score: float64(time.Now().UnixMilli()), Member: "bad"}).Err(); err != nil {
		t.Fatal(err)
	}
	if out := s.must("tasks", "show", "bad"); !strings.Contains(out, "dead, died") || !strings.Contains(out, "record") {
		t.Errorf("%s", out)
	}
	if row := strings.Join(cells(s.must("tasks", "list", "--state", "dead"), "bad"), " "); !strings.Contains(row, "record") {
		t.Errorf("%q", row)
	}
	s.fails(1, []string{"tasks", "retry", "bad"}, "record")
	if rec := rdb.HGet(t.Context(), keys.Tasks, "bad").Val(); rec != "?" {
		t.Errorf("its record is %q now", rec)
	}
	s.must("tasks", "delete", "bad")
	s.fails(1, []string{"tasks", "show", "bad"}, "not found")
	s.must("tasks", "show", "good")
}

func TestTasks_ofEachState(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serving("--release", "v1")
	s.must("enqueue", "http", "--id", "fails", "--max-attempts", "1", "--payload", `{"url":"http://127.0.0.1:1/x"}`)
	s.must("enqueue", "http", "--id", "fails-too", "--max-attempts", "1", "--payload", `{"url":"http://127.0.0.1:1/x"}`)
	s.must("enqueue", "echo", "--id", "works")
	s.must("enqueue", "sleep", "--id", "long", "--payload", `{"for":"1h"}`)
	waitFor := func(state string, ids ...string) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool {
			out := s.must("tasks", "list", "--state", state)
			for _, id := range ids {
				if cells(out, id) == nil {
					return false
				}
			}
			return true
		}, "%v are not %s", ids, state)
	}
	waitFor("dead", "fails", "fails-too")
	waitFor("done", "works")
	waitFor("running", "long")

	if out := s.must("tasks", "show", "fails"); !strings.Contains(out, "dead, died") || !strings.Contains(out, "attempt 1 failed") || !strings.Contains(out, "connection refused") {
		t.Errorf("%s", out)
	}
	if out := s.must("tasks", "list"); !strings.Contains(out, "connection refused") || !strings.Contains(out, "kept for 23h59m") {
		t.Errorf("%s", out)
	}
	if out := s.must("tasks", "failures"); !strings.Contains(out, "connection refused") || !strings.HasSuffix(out, "2 tasks dead, of 1 error\n") {
		t.Errorf("%s", out)
	}
	var groups admin.List[admin.FailureGroup]
	if s.json(&groups, "tasks", "failures"); len(groups.Items) != 1 || groups.Items[0].Tasks != 2 || groups.Items[0].Type != "http" {
		t.Errorf("%+v", groups)
	}
	if out := s.must("tasks", "retry", "--all", "--error", "*no route*", "--dry-run"); out != "0 tasks would be due again\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("tasks", "retry", "--all", "--error", groups.Items[0].Error, "--dry-run"); out != "2 tasks would be due again\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("doctor"); !strings.Contains(out, "2 tasks failed for good") {
		t.Errorf("%s", out)
	}
	s.fails(1, []string{"tasks", "cancel", "works"}, `task "works" is already done`)
	if out := s.must("tasks", "retry", "fails"); out != "due again: fails\n" {
		t.Errorf("%q", out)
	}
	waitFor("dead", "fails")
	if out := s.must("tasks", "retry", "--all"); out != "2 of 2 tasks due again\n" {
		t.Errorf("%q", out)
	}
	waitFor("dead", "fails", "fails-too")
	if out := s.must("tasks", "retry", "--all", "--type", "echo", "--json"); out != `{"matched":0,"changed":0,"unreadable":0,"dry_run":false}`+"\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("tasks", "delete", "--all", "--type", "http", "--dry-run"); out != "2 tasks would be deleted\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("tasks", "delete", "--all", "--type", "http", "--reason", "a test"); out != "2 of 2 tasks deleted\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("events"); !strings.Contains(out, "a test") {
		t.Errorf("the events do not have the reason:\n%s", out)
	}
	if out := s.must("tasks", "cancel", "--all", "--queue", "none", "--dry-run"); out != "0 tasks would be cancelled, or asked to stop\n" {
		t.Errorf("%q", out)
	}
	s.must("enqueue", "sleep", "--id", "later", "--payload", `{"for":"1h"}`, "--in", "1h")
	var got admin.BulkResult
	if s.json(&got, "tasks", "cancel", "--all", "--type", "sleep"); got != (admin.BulkResult{Matched: 2, Changed: 2}) {
		t.Errorf("%+v", got)
	}
	s.fails(1, []string{"tasks", "show", "later"}, "not found")
	s.must("enqueue", "sleep", "--id", "long-too", "--payload", `{"for":"1h"}`)
	waitFor("running", "long-too")
	if out := s.must("tasks", "cancel", "long-too"); out != "asked to stop long-too\n" {
		t.Errorf("%q", out)
	}
	testredis.Eventually(t, patience, func() bool {
		return cells(s.must("tasks", "list", "--state", "running"), "long") == nil
	}, "it does not stop")
	s.must("tasks", "delete", "works")
	s.fails(1, []string{"tasks", "show", "works"}, "not found")
}

// Many tasks are changed with and without an instance, on Redis and over the API, and it looks the same. The command never waits for an
// instance that is not there.
func TestTasks_manyWithAndWithoutAnInstance(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	url := s.throughAPI(t, nil)
	both := func(begun int) {
		t.Helper()
		for _, env := range []func(string) string{s.env(), testEnv("ONBEAT_API", url, "ONBEAT_TOKEN", apiToken)} {
			for i := range 3 {
				s.must("enqueue", "sleep", "--id", fmt.Sprint("later", i), "--in", "1h", "--payload", `{"for":"1s"}`)
			}
			r := runWith(t.Context(), env, "", "tasks", "cancel", "--all", "--type", "sleep")
			if r.code != 0 || r.out != "3 of 3 tasks cancelled, or asked to stop\n" {
				t.Errorf("%+v", r)
			}
			if r := runWith(t.Context(), env, "", "tasks", "cancel", "--all", "--type", task.BulkType); r.code != exitAsked {
				t.Errorf("%+v", r)
			}
		}
		n := strings.Count(s.must("events", "--since", "1h"), "bulk done")
		if n != begun {
			t.Errorf("instances did %d, want %d", n, begun)
		}
	}
	both(0)
	s.serving("--release", "v1")
	both(2)
	s.must("instances", "pause", "--for", "10m")
	both(2)
}

// The instance goes on when the command cannot look: the command looks again, and tells the sum.
func TestTasks_manyThoughTheAPIIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serving("--release", "v1")
	var away atomic.Int64
	front := before(t, s.throughAPI(t, nil), func(w http.ResponseWriter, r *http.Request) bool {
		gone := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/bulk/") && away.Add(1) <= 5
		if gone {
			w.WriteHeader(http.StatusBadGateway)
		}
		return gone
	})
	s.must("enqueue", "sleep", "--id", "later", "--in", "1h", "--payload", `{"for":"1s"}`)
	r := runWith(t.Context(), testEnv("ONBEAT_API", front, "ONBEAT_TOKEN", apiToken), "", "tasks", "cancel", "--all", "--type", "sleep")
	if r.code != 0 || r.out != "1 of 1 tasks cancelled, or asked to stop\n" || away.Load() <= 5 {
		t.Errorf("%+v after %d looks", r, away.Load())
	}
}

// A person who interrupts the command learns what was done, and that an instance goes on if it could not be told to stop.
func TestTasks_manyInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	target := s.throughAPI(t, nil)
	interrupted := func(at func(w http.ResponseWriter, r *http.Request, interrupt func()) bool) ran {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		front := before(t, target, func(w http.ResponseWriter, r *http.Request) bool { return at(w, r, interrupt) })
		return runWith(ctx, testEnv("ONBEAT_API", front, "ONBEAT_TOKEN", apiToken), "", "tasks", "cancel", "--all", "--type", "sleep")
	}

	const page = queue.MaxBatch
	if r := s.run(strings.Repeat(`{"type":"sleep","in":"1h","payload":{"for":"1s"}}`+"\n", page+1), "enqueue", "--file", "-"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	var pages atomic.Int64
	r := interrupted(func(_ http.ResponseWriter, r *http.Request, interrupt func()) bool {
		if r.URL.Path != "/v1/tasks/bulk" || pages.Add(1) == 1 {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the command has gone
		interrupt()
		<-r.Context().Done()
		return true
	})
	s.failed(r, exitFailed, "in this process", "interrupted", fmt.Sprint(page))

	s.serving("--release", "v1")
	var stops atomic.Int64
	r = interrupted(func(w http.ResponseWriter, r *http.Request, interrupt func()) bool {
		away := strings.HasPrefix(r.URL.Path, "/v1/bulk/")
		if away {
			interrupt()
			if strings.HasSuffix(r.URL.Path, "/stop") {
				stops.Add(1)
			}
			w.WriteHeader(http.StatusBadGateway)
		}
		return away
	})
	s.failed(r, exitFailed, "in an instance", "onbeat events")
	if stops.Load() == 0 {
		t.Error("the command did not ask to stop it")
	}
	testredis.Eventually(t, patience, func() bool { return strings.Contains(s.must("events", "--since", "1h"), "bulk done") }, "the instance goes on")
}

func TestTasksShow_printsAPayloadAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const payload = `{"q":"a<b>c&d","path":"c:\\\\u0026","quote":"\""}`
	s.must("enqueue", "echo", "--id", "x", "--in", "1h", "--payload", payload)
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 1h, task: echo, payload: {q: 'a<b>c&d'}}]\n"))
	for _, args := range []string{"tasks show x", "tasks show x --json", "tasks list --json"} {
		if out := s.must(strings.Fields(args)...); !strings.Contains(out, payload) {
			t.Errorf("%s: %s", args, out)
		}
	}
	for _, args := range []string{"schedules show a", "schedules show a --json", "schedules list --json"} {
		if out := s.must(strings.Fields(args)...); !strings.Contains(out, `{"q":"a<b>c&d"}`) {
			t.Errorf("%s: %s", args, out)
		}
	}
}
