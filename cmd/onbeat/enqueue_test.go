package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// file writes a file, and returns its name.
func (s *shell) file(name, text string) string {
	s.Helper()
	return s.write(filepath.Join(s.TempDir(), name), text)
}

// write is file with a path.
func (s *shell) write(path, text string) string {
	s.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func TestEnqueue_printsTheIDOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if id := strings.TrimSpace(s.must("enqueue", "invoice.send", "--payload", `{"n":1}`)); len(id) != 20 {
		t.Errorf("id %q", id)
	}
	if out := s.must("enqueue", "echo", "--id", "one", "--in", "1h"); out != "one\n" {
		t.Errorf("printed %q", out)
	}
	s.fails(1, []string{"enqueue", "echo", "--id", "one"}, `already there: task "one"`)
	s.must("enqueue", "echo", "--unique", "k", "--unique-for", "1h", "--id", "two")
	s.fails(1, []string{"enqueue", "echo", "--unique", "k"}, `already there: task "two" holds the unique key "k"`)
	r := s.run("", "enqueue", "echo", "--id", "one", "--json")
	if r.code != 1 || r.out != `{"id":"one","added":false,"taken":"id"}`+"\n" {
		t.Errorf("%+v", r)
	}
}

// A line of a file may be read on another machine, in another zone.
func TestEnqueue_takesADateAsAFlagOnly(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "echo", "--id", "dated", "--at", "2030-01-31")
	var l admin.Task
	s.json(&l, "tasks", "show", "dated")
	if want := time.Date(2030, 1, 31, 0, 0, 0, 0, time.Local); !l.Due.Equal(want) {
		t.Errorf("due %v, want %v", l.Due, want)
	}
	s.fails(2, []string{"enqueue", "echo", "--at", "2030-02-30"}, `at "2030-02-30": not a time`)
	s.fails(2, []string{"enqueue", "--file", s.file("tasks.jsonl", `{"type":"echo","at":"2030-01-31"}`)}, `at "2030-01-31": not a time`)
}

func TestEnqueue_keepsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "echo", "--id", "all", "--payload", `{"a":[1]}`, "--at", "2030-01-31T09:00:00+09:00", "--queue", "low", "--priority", "high",
		"--timeout", "5s", "--max-attempts", "3", "--backoff", "2s", "--backoff-cap", "1m", "--key", "k", "--key-limit", "2", "--keep", "1d")
	var l admin.Task
	s.json(&l, "tasks", "show", "all")
	if l.State != "planned" || l.Queue != "low" || l.Priority != "high" || l.Timeout != "5s" || l.MaxAttempts != 3 || l.Key != "k" || string(l.Payload) != `{"a":[1]}` {
		t.Errorf("%+v", l)
	}
	if got := at(l.Due); got != "2030-01-31T00:00:00Z" {
		t.Errorf("due %s", got)
	}
}

func TestEnqueue_refusesAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--file"},
		{[]string{"echo", "--file", "x"}, "--file"},
		{[]string{"http", "-p", `{"method":"GET"}`}, "payload.url: "},
		{[]string{"echo", "-p", `{`}, "payload: "},
		{[]string{"echo", "-p", `"` + strings.Repeat("x", 1<<20) + `"`}, "1048576"},
		{[]string{"echo", "-p", `{"a":{"b":1,"b":2}}`}, "payload.a.b: "},
		{[]string{"echo", "-p", "[\"\xff\"]"}, "argument 4 "},
		{[]string{"echo", "--at", "2030-01-01T00:00:00Z", "--in", "1s"}, "at"},
		{[]string{"echo", "--max-attempts=0"}, `max_attempts "0": `},
	} {
		s.fails(2, append([]string{"enqueue"}, c.args...), c.want)
	}
	s.nothingWritten()
}

func TestEnqueueFile_addsEachOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var b strings.Builder
	b.WriteString("\xef\xbb\xbf")
	for i := range 2500 {
		fmt.Fprintf(&b, `{"type":"job","id":"job-%d","in":"1h","payload":{"n":%d}}`+"\r\n\n", i, i)
	}
	file := s.file("tasks.jsonl", strings.TrimRight(b.String(), "\r\n"))
	if out := s.must("enqueue", "--file", file); out != "enqueued 2500, 0 already there, 0 bad\n" {
		t.Errorf("%q", out)
	}
	if out := s.must("enqueue", "--file", file); out != "enqueued 0, 2500 already there, 0 bad\n" {
		t.Errorf("again: %q", out)
	}
	r := s.run(`{"type":"job","id":"job-1"}`+"\n"+`{"type":"job"}`, "enqueue", "--file", "-", "--json")
	if r.code != 0 || r.out != `{"enqueued":1,"already_there":1,"bad":0}`+"\n" {
		t.Errorf("stdin: %+v", r)
	}
}

// badLines say which field is at fault, if one is.
var badLines = []struct{ line, field string }{
	{`{"type":"echo","inn":"5s"}`, "inn"},
	{`{"type":"echo"`, ""},
	{`{"type":"echo"} {"type":"echo"}`, ""},
	{`{"type":5}`, "type"},
	{`{"type":"echo","max_attempts":0}`, "max_attempts"},
	{`{"type":"http","payload":{}}`, "payload.url"},
	{`{"type":"echo","id":"a","id":"b"}`, "id"},
	{`{"type":"echo","payload":{"a":1,"b":[{},{"c":1,"d":{},"c":2}]}}`, "payload.b[1].c"},
	{"{\"type\":\"echo\",\"id\":\"caf\xe9\"}", "id"},
	{`{"type":"echo","id":"a\ud800"}`, "id"},
	{`{"type":"echo","at":"1960-01-01T00:00:00Z"}`, "at"},
}

func TestEnqueueFile_namesTheBadLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	good := `{"type":"job"}` + "\n"
	for _, c := range badLines {
		file := s.file("tasks.jsonl", strings.Repeat(good, 6)+c.line+"\n"+good)
		s.fails(2, []string{"enqueue", "--file", file}, "tasks.jsonl:7: "+c.field)
	}
	s.failed(s.run(strings.Repeat(good, 6)+"x\n", "enqueue", "--file", "-"), 2, "stdin", "stdin:7: not JSON")
	s.nothingWritten()

	r := s.run(strings.Repeat(good, fileBatch+6)+"x\n"+good, "enqueue", "--file", "-")
	s.failed(r, 2, "a later batch", "stdin:1007: not JSON", "1000 tasks before that were enqueued")
	file := s.file("tasks.jsonl", strings.Repeat(good, 6)+"x\n"+good+strings.Repeat("y", 8<<20)+"\n"+good)
	r = s.run("", "enqueue", "--file", file, "--skip-bad")
	if r.code != 1 || r.out != "enqueued 8, 0 already there, 2 bad\n" || strings.Count(r.err, "\n") != 2 ||
		!strings.Contains(r.err, "tasks.jsonl:7: ") || !strings.Contains(r.err, "tasks.jsonl:9: longer than any task") {
		t.Errorf("--skip-bad: %+v", r)
	}
}

// Redis may refuse a task of a batch: the command names its line, counts it and fails, however it reaches the namespace.
func TestEnqueueFile_tellsOfTasksThatRedisRefuses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	url := s.throughAPI(t, nil)
	lanes := map[string]any{}
	for i := range 2000 {
		lanes[fmt.Sprint("low/full", i, "/x")] = 1
	}
	s.must("enqueue", "echo", "--id", "there") // its lane exists
	s.must("schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, start: aligned, task: mine.own}"))
	keys := queue.Partition{Namespace: s.ns}.Keys()
	if err := s.rdb.HSet(t.Context(), keys.Lanes, lanes).Err(); err != nil {
		t.Fatal(err)
	}
	for i, env := range []func(string) string{s.env(), testEnv("ONBEAT_API", url, "ONBEAT_TOKEN", apiToken)} {
		file := s.file(fmt.Sprint(i, ".jsonl"), fmt.Sprintf(`{"type":"echo","id":"new%d"}
{"type":"echo","id":"there"}
{"type":"other"}
{"type":"another","id":"mine%d"}
`, i, i))
		for _, args := range [][]string{{"enqueue", "--file", file}, {"enqueue", "--file", file, "--skip-bad"}} {
			r := runWith(t.Context(), env, "", args...)
			if r.code != exitFailed || !strings.HasSuffix(r.out, "already there, 2 bad\n") ||
				strings.Count(r.err, "2,000 lanes") != 2 || !strings.Contains(r.err, ".jsonl:3:") || !strings.Contains(r.err, ".jsonl:4:") {
				t.Errorf("%+v", r)
			}
		}
		one := s.file("one.jsonl", `{"type":"other"}`)
		if r := runWith(t.Context(), env, "", "enqueue", "--file", one, "--skip-bad"); r.code != exitFailed || r.out != "enqueued 0, 0 already there, 1 bad\n" {
			t.Errorf("a file of one line: %+v", r)
		}
		if r := runWith(t.Context(), env, "", "schedules", "backfill", "a", "--from", "3h"); r.code != exitFailed || !strings.HasPrefix(r.out, "added 0 of 3 slots\n") ||
			!strings.Contains(r.err, "2,000 lanes") || strings.Contains(r.out, "earlier") {
			t.Errorf("a backfill: %+v", r)
		}
		if r := runWith(t.Context(), env, "", "schedules", "backfill", "a", "--from", "3h", "--json"); r.code != exitFailed || !strings.Contains(r.out, `"refused":3`) {
			t.Errorf("a backfill in JSON: %+v", r)
		}
		if r := runWith(t.Context(), env, "", "enqueue", "other"); r.code != exitAsked || r.out != "" || !strings.Contains(r.err, "2,000 lanes") {
			t.Errorf("%+v", r)
		}
	}
	if n := s.rdb.HLen(t.Context(), keys.Tasks).Val(); n != 3 {
		t.Errorf("there are %d tasks", n)
	}
}

func TestEnqueueFile_refusesTheFlagsOfOneTask(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("tasks.jsonl", `{"type":"job"}`+"\n")
	for _, name := range []string{"--payload", "--id", "--in", "--queue", "--unique-for", "--max-attempts", "--backoff-cap", "--keep"} {
		s.fails(2, []string{"enqueue", "--file", file, name, "1"}, name, "--file")
	}
	s.nothingWritten()
}

func TestParseSpec_keepsAllThatIsGood(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"a":1,"A":2,"b":{"a":1}}`, `[{"a":1},{"a":1}]`, `"\ud83d\ude00 \\ud800 \ufffd"`, "\"\ufffd\U0001f600\"", `1e999`, `{}`, `[[],[{}]]`,
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		spec, err := parseSpec([]byte(`{"type":"echo","payload":` + payload + `}`))
		if err != nil || string(spec.Payload) != payload {
			t.Errorf("%.100s: %v", payload, err)
		}
	}
}

func FuzzTaskLine(f *testing.F) {
	f.Add(`{"type":"job","id":"job-1","in":"1h","payload":{"n":1},"unique":"k","unique_for":"1s","key":"k","key_limit":1,"keep":"0s"}`)
	for _, c := range badLines {
		f.Add(c.line)
	}
	check := newChecker(task.Limits{})
	f.Fuzz(func(t *testing.T, line string) {
		spec, err := parseSpec([]byte(line))
		if err == nil {
			var made *task.Task
			if made, err = check.task(spec); err == nil && made == nil {
				t.Errorf("%q: no task and no error", line)
			}
		}
		if err != nil && !askedWrongly(err) {
			t.Errorf("%q: not exit code 2: %v", line, err)
		}
	})
}

func TestEnqueueFile_fromAPipeEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(`{"type":"job"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"enqueue", "--file", "-"}, s.env(), r, &out, &errs) }()
	interrupt()
	if code := <-ended; code != 1 || errs.String() != "onbeat: interrupted\n" {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	_ = w.Close()
}

// A task that may be lost is to be added again under its ID, or after a look if only the API knows the ID.
func TestEnqueue_saysHowToRepeatIt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	apart := false
	front := before(t, s.throughAPI(t, nil), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		if apart && bytes.Contains(body, []byte(`"id"`)) {
			_, _ = io.WriteString(w, `{"type":"invalid","detail":"apart","errors":[{"field":"tasks[0].id","reason":"apart"}]}`)
			return true
		}
		_, _ = io.WriteString(w, `{"type":"unreplicated","detail":"too few replicas"}`)
		return true
	})
	enqueue := func(args ...string) ran {
		return runWith(t.Context(), testEnv("ONBEAT_API", front, "ONBEAT_TOKEN", apiToken), "", append([]string{"enqueue", "echo"}, args...)...)
	}
	s.failed(enqueue("--id", "mine"), exitFailed, "its own ID", "--id mine")
	if r := enqueue(); !regexp.MustCompile(`--id \w{20}\b`).MatchString(r.err) {
		t.Errorf("%+v", r)
	}
	apart = true
	r := enqueue()
	s.failed(r, exitFailed, "an ID of the API", "tasks list --type echo")
	if strings.Contains(r.err, "--id") {
		t.Errorf("%+v", r)
	}
}

// reading is a function as a reader.
type reading func([]byte) (int, error)

func (r reading) Read(b []byte) (int, error) { return r(b) }

func TestEnqueueFile_saysWhatItAddedBeforeItWasInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	lines := strings.NewReader(strings.Repeat(`{"type":"job"}`+"\n", fileBatch))
	in := reading(func(b []byte) (int, error) {
		if lines.Len() > 0 {
			return lines.Read(b)
		}
		interrupt() // the batch is added
		return 0, ctx.Err()
	})
	var out, errs bytes.Buffer
	code := run(ctx, []string{"enqueue", "--file", "-"}, s.env(), in, &out, &errs)
	s.failed(ran{code, out.String(), errs.String()}, exitFailed, "interrupted", "interrupted", strconv.Itoa(fileBatch))
}

// A user who adds a task where nothing runs learns it at once.
func TestEnqueue_notesThatNoInstanceRuns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("s.yaml", "- {name: a, every: 1h, task: echo}\n- {name: b, every: 1h, task: http, payload: {url: 'http://127.0.0.1:9/'}}\n")
	for _, args := range [][]string{{"enqueue", "echo"}, {"schedules", "apply", file}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, s.env(), strings.NewReader(""), &out, &errs); code != 0 || len(unattended.FindAllString(errs.String(), -1)) != 1 {
			t.Errorf("%v: exit %d, said %q; want one note", args, code, &errs)
		}
	}
	s.fails(1, []string{"enqueue", "echo", "--strict"}, "no instance runs")
}

// six returns a shell in a namespace that is about to have six partitions, and the args of its commands. A type has a limit.
func six(t *testing.T) (s *shell, enqueue func(args ...string) []string) {
	t.Helper()
	s = newShell(t)
	file := s.file("six.yaml", "partitions: 6\nlimits: {scarce: 1}\n")
	return s, func(args ...string) []string { return append([]string{"enqueue", "-c", file, "--file"}, args...) }
}

// apartLines are tasks two of whose names lie apart in six partitions: a key, and a type with a limit.
var apartLines = []struct{ line, field string }{
	{`{"type":"echo","id":"n2","key":"q2"}`, "id"},
	{`{"type":"scarce","id":"n2"}`, "id"},
	{`{"type":"echo","id":"x@1"}`, "id"}, // no namespace lets a caller say that
}

func TestEnqueueFile_skipsWhatLiesApart(t *testing.T) {
	t.Parallel()
	for _, c := range apartLines {
		s, enqueue := six(t)
		text := `{"type":"echo","id":"n1"}` + "\n" + c.line + "\n" + `{"type":"echo","id":"n3"}` + "\n"
		for _, source := range []string{s.file("apart.jsonl", text), "-"} {
			r := s.run(text, enqueue(source, "--skip-bad")...)
			want := "enqueued 2, 0 already there, 1 bad\n"
			if source == "-" {
				want = "enqueued 0, 2 already there, 1 bad\n"
			}
			if r.code != exitFailed || r.out != want || strings.Count(r.err, "\n") != 1 || !regexp.MustCompile(`^onbeat: \S*(apart.jsonl|stdin):2: `+c.field).MatchString(r.err) {
				t.Errorf("%s in %s: %+v", c.line, source, r)
			}
		}
	}
}

// A later command learns from Redis how the namespace is split, and which types have a limit.
func TestEnqueueFile_isRefusedForALineThatLiesApart(t *testing.T) {
	t.Parallel()
	s, enqueue := six(t)
	good := `{"type":"job"}` + "\n"
	for _, c := range apartLines {
		s.fails(exitAsked, enqueue(s.file("apart.jsonl", strings.Repeat(good, 2000)+c.line+"\n"+good)), "apart.jsonl:2001: "+c.field)
	}
	s.nothingWritten()
	s.must(enqueue(s.file("good.jsonl", good))...)
	for _, c := range apartLines {
		s.fails(exitAsked, []string{"enqueue", "--file", s.file("apart.jsonl", strings.Repeat(good, 2000)+c.line+"\n"+good)}, "apart.jsonl:2001: "+c.field)
	}
	if out := s.must("tasks", "list"); strings.Count(out, "job") != 1 {
		t.Errorf("more was added: %.300s", out)
	}
}

// A line that only the API can refuse is a bad line too.
func TestEnqueueFile_skipsWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	d, err := onbeat.New(s.rdb, onbeat.Config{Namespace: s.ns, Partitions: 6})
	if err != nil {
		t.Fatal(err)
	}
	apart := `{"type":"echo","id":"n2","key":"q2"}` + "\n"
	file := s.file("apart.jsonl", apart+`{"type":"echo","id":"n1"}`+"\n"+apart+`{"type":"echo","id":"n3"}`+"\n"+apart)
	env := testEnv("ONBEAT_API", servedTo(t, d, func() []string { return nil }), "ONBEAT_TOKEN", apiToken)
	r := runWith(t.Context(), env, "", "enqueue", "--file", file, "--skip-bad")
	if r.code != exitFailed || r.out != "enqueued 2, 0 already there, 3 bad\n" || strings.Count(r.err, "\n") != 3 || strings.Count(r.err, "apart.jsonl:5: id ") != 1 {
		t.Errorf("%+v", r)
	}
	s.failed(runWith(t.Context(), env, "", "enqueue", "--file", file), exitAsked, "over the API", "apart.jsonl:1: id ")
}

// An API may say anything of a batch.
func TestRefusedOf_isATaskOfTheBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ index, done, of, want int }{{3, 0, 4, 3}, {3, 3, 4, 3}, {-1, 0, 4, 0}, {4, 0, 4, 0}, {2, 3, 4, 0}} {
		at, why := refusedOf(fmt.Errorf("over HTTP: %w", &producer.BatchError{Index: c.index, Err: task.ErrInvalid}), c.done, c.of)
		if at != c.want || (why != nil) != (c.want > 0) {
			t.Errorf("%+v: %d, %v", c, at, why)
		}
	}
}

// If one partition of a namespace fails, the tasks of the others are added, wherever they stand in the file.
func TestEnqueueFile_saysThatOthersWereEnqueued(t *testing.T) {
	t.Parallel()
	s, enqueue := six(t)
	where, lines, failed := split.Map{Partitions: 6}, "", 0
	for i := range 12 {
		lines += fmt.Sprintf(`{"type":"echo","id":"v%d"}`+"\n", i)
		if where.Of(fmt.Sprint("v", i)) == 3 {
			failed++
		}
	}
	if failed == 0 || failed > 10 || where.Of("v11") == 3 {
		t.Fatalf("%d tasks of partition 3", failed)
	}
	if err := s.rdb.Set(t.Context(), queue.Partition{Namespace: s.ns, Number: 3}.Keys().Tasks, "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r := s.run("", enqueue(s.file("v.jsonl", lines))...)
	if r.code != exitFailed || strings.Count(r.err, "v.jsonl:") != failed || !strings.Contains(r.err, fmt.Sprintf("; %d other tasks were enqueued", 12-failed)) {
		t.Errorf("%d failed: %+v", failed, r)
	}
}
