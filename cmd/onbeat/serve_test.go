package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/testredis"
)

// recorder notes the slots that arrive, and who sent them.
type recorder struct {
	*httptest.Server
	mu    sync.Mutex
	slots map[string]int // "schedule slot" -> times
	by    []string       // release, in order of arrival
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{slots: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.slots[q.Header.Get("Onbeat-Schedule")+" "+q.Header.Get("Onbeat-Slot")]++
		r.by = append(r.by, q.Header.Get("Onbeat-Release"))
	}))
	t.Cleanup(r.Close)
	return r
}

// count returns how many requests came from a release. "" counts all.
func (r *recorder) count(release string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, by := range r.by {
		if release == "" || by == release {
			n++
		}
	}
	return n
}

func (r *recorder) names() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	var list []string
	for k := range r.slots {
		name, _, _ := strings.Cut(k, " ")
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

func (r *recorder) twice() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for k, n := range r.slots {
		if n > 1 {
			list = append(list, fmt.Sprintf("%s ran %d times", k, n))
		}
	}
	return list
}

// logs waits until an instance has logged a message.
func (p *program) logs(message string) {
	p.Helper()
	testredis.Eventually(p.T, 30*time.Second, func() bool {
		return strings.Contains(p.errs.String(), `"message":"`+message+`"`)
	}, "never logged %q", message)
}

func (p *program) signal(s os.Signal) {
	p.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

func configText(url, ns, target string, names ...string) string {
	text := fmt.Sprintf("redis: {url: %q}\nnamespace: %s\nlease: 1s\napi: {listen: 127.0.0.1:0}\nlog: {level: debug}\n", url, ns)
	if len(names) > 0 {
		text += "schedules:\n"
	}
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %s, every: 100ms, task: http, payload: {url: %q}}\n", name, target)
	}
	return text
}

func TestServe_handsOverToTheNewestAndReloads(t *testing.T) {
	t.Parallel()
	testredis.Real(t)
	s, rec := newShell(t), newRecorder(t)
	config := s.file("onbeat.yaml", configText(s.url, s.ns, rec.URL, "a"))
	one := startProgram(t, t.TempDir(), []string{"ONBEAT_RELEASE=v1"}, "serve", "-c", config)
	one.logs("leads")
	testredis.Eventually(t, patience, func() bool { return rec.count("v1") > 2 }, "v1 does not work")
	two := startProgram(t, t.TempDir(), nil, "serve", "-c", config, "--release", "v2")
	two.logs("leads")
	testredis.Eventually(t, patience, func() bool { return rec.count("v2") > 2 }, "v2 does not work")
	if out := s.must("instances"); !strings.Contains(out, "leads, epoch") || cells(out, "ID") == nil || strings.Count(out, "\n") != 3 {
		t.Errorf("instances:\n%s", out)
	}

	// A bad file keeps the old schedules, and is one line of the log; a good one is declared at once.
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		two.signal(syscall.SIGHUP)
	}
	write("concurency: 1\n")
	two.logs("kept the old schedules: the config cannot be used")
	if !strings.Contains(two.errs.String(), "onbeat.yaml:1: concurency: unknown field (did you mean concurrency?)") {
		t.Errorf("the log does not say what is wrong: %s", two.errs.String())
	}
	write(configText(s.url, s.ns, rec.URL, "a", "b"))
	two.logs("read the schedules again")
	testredis.Eventually(t, patience, func() bool { return strings.Contains(rec.names(), "b") }, "b is not declared")
	if out := s.must("schedules", "list"); cells(out, "a") == nil || cells(out, "b") == nil || !strings.Contains(out, "declared by v2") {
		t.Errorf("schedules:\n%s", out)
	}

	two.signal(syscall.SIGTERM)
	if code := two.exit(20 * time.Second); code != 0 {
		t.Errorf("SIGTERM: exit %d", code)
	}
	before := rec.count("v1")
	testredis.Eventually(t, patience, func() bool { return rec.count("v1") > before+2 }, "v1 does not take over again")
	one.signal(os.Interrupt)
	if code := one.exit(20 * time.Second); code != 0 {
		t.Errorf("SIGINT: exit %d", code)
	}
	if list := rec.twice(); len(list) > 0 {
		t.Errorf("%v", list)
	}
}

func TestServe_waitsForRedisAndSurvivesItsRestart(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes")
	rec, ns := newRecorder(t), testredis.Namespace(t)
	srv.Stop()
	s := &shell{T: t, ns: ns, url: srv.URL()}
	p := startProgram(t, t.TempDir(), nil, "serve", "-c", s.file("onbeat.yaml", configText(srv.URL(), ns, rec.URL, "a")))
	p.logs("waiting for redis")
	srv.Restart()
	p.logs("redis answers again")
	p.logs("leads")
	testredis.Eventually(t, patience, func() bool { return rec.count("") > 2 }, "nothing runs")
	srv.Stop()
	p.logs("heartbeat failed")
	srv.Restart()
	before := rec.count("")
	testredis.Eventually(t, 30*time.Second, func() bool { return rec.count("") > before+5 }, "nothing runs after the restart")
	if n := strings.Count(p.errs.String(), `"message":"waiting for redis"`); n > 2 {
		t.Errorf("waiting is logged %d times", n)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("SIGTERM: exit %d", code)
	}
}

func TestServe_isInAHurryAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := startProgram(t, t.TempDir(), nil, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, "http://127.0.0.1:1")))
	p.logs("leads")
	s.must("enqueue", "sleep", "--payload", `{"for":"1h"}`, "--id", "long")
	testredis.Eventually(t, patience, func() bool { return strings.Contains(s.must("tasks", "list", "--state", "running"), "long") }, "it does not run")
	p.signal(syscall.SIGTERM)
	p.logs("finishing running tasks")
	time.Sleep(2 * sameSignal) // an earlier signal would count as the same request
	p.logs("stopping: on a second signal (Ctrl-C) the instance hands back its running tasks and stops at once")
	p.signal(syscall.SIGTERM)
	if code := p.exit(20 * time.Second); code != 1 {
		t.Errorf("the second signal: exit %d, want 1", code)
	}
	p.logs("handing back running tasks")
	p.logs("deregistered")
	if said := p.errs.String(); !strings.Contains(said, `"tasks":["long"]`) {
		t.Errorf("it does not say what it dropped: %s", said)
	}
	if out := s.must("tasks", "list", "--state", "waiting"); cells(out, "long") == nil {
		t.Errorf("it did not hand back what ran:\n%s", out)
	}
}

// timeout(1) sends its signal to the process and to the process's group.
func TestServe_takesTwoSignalsAtOnceForOne(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := startProgram(t, t.TempDir(), nil, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, "http://127.0.0.1:1")))
	p.logs("leads")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT)
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
	p.logs("deregistered")
}

func TestServe_refusesABadConfigAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for text, want := range map[string]string{
		"namespace: x\nconcurency: 5\n":        "x.yaml:2: concurency: ",
		"a: b: c\n":                            "x.yaml:1: ",
		"lease: 1ms\nconcurrency: -1\n":        "onbeat check",
		"- {name: a, every: 1s, task: echo}\n": "x.yaml:1: ",
		"schedules:\n  - {name: a, every: 1s, task: exec, payload: {command: [ls]}}\n": `x.yaml:2: schedules[0].task "exec": `,
	} {
		s.failed(s.run("", "serve", "-c", s.file("x.yaml", text)), 2, text, want)
	}
	s.nothingWritten()
}

// starts runs an instance until it has begun, and returns its log.
func starts(t *testing.T, env func(string) string, args ...string) string {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var log lockedBuffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, append([]string{"serve"}, args...), env, strings.NewReader(""), io.Discard, &log)
	}()
	testredis.Eventually(t, patience, func() bool { return strings.Contains(log.String(), "starting") }, "it does not begin")
	end()
	<-ended
	return log.String()
}

// serving runs an instance within the test.
func (s *shell) serving(args ...string) (stop func() ran) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan ran, 1)
	go func() { done <- runWith(ctx, s.env(), "", append([]string{"serve"}, args...)...) }()
	testredis.Eventually(s.T, patience, func() bool { return strings.Contains(s.must("instances"), "leads") }, "nobody leads")
	var once sync.Once
	var r ran
	stop = func() ran { once.Do(func() { cancel(); r = <-done }); return r }
	s.Cleanup(func() { stop() })
	return stop
}

func TestServe_reloadsWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "schedules: [{name: a, every: 1h, task: echo}]\n")
	a := newApp(&globals{Config: file}, s.env(), strings.NewReader(""), io.Discard, io.Discard)
	target, err := a.target()
	if err != nil {
		t.Fatal(err)
	}
	c := openInside(t, s.url, s.ns)
	var log lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	hangups, ended := make(chan os.Signal), make(chan struct{})
	go func() {
		(&serveCmd{}).reload(ctx, hangups, a, c.Dispatcher, target, zerolog.New(&log))
		close(ended)
	}()
	for _, step := range []struct{ text, want string }{
		{"schedules: [{name: a, every: 1h, task: echo}, {name: b, every: 1h, task: echo}]\n", `"schedules":2`},
		{"schedules: [{name: a, every: 0s, task: echo}]\n", "kept the old schedules"},
		{"schedules: [{name: a, every: 1h, task: exec, payload: {command: [ls]}}]\n", "exec is not allowed"},
		{"http: {pass_env: [TOKEN]}\nschedules: [{name: a, every: 1h, task: http, payload: {url: 'http://h', body: '${TOKEN}'}}]\n", "started without that variable"},
		{"namespace: other\n", `"schedules":0`},
	} {
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		hangups <- syscall.SIGHUP
		testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(log.String(), step.want) }, "%s: the log lacks %s: %s", step.text, step.want, &log)
	}
	stop()
	<-ended
}

func TestServe_takesTheVersionWhereNoReleaseIsNamed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := startProgram(t, t.TempDir(), nil, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, "http://127.0.0.1:1")))
	p.logs("leads")
	const warning = "no release is named, and the build has no revision: taking its version"
	want := buildRevision() // go test stamps no revision unless a flag asks for it
	if want == "" {
		p.logs(warning)
		want = buildVersion()
	}
	var list struct{ Items []struct{ Release string } }
	if s.json(&list, "instances"); len(list.Items) != 1 || list.Items[0].Release != want {
		t.Errorf("instances = %+v, want one of release %s", list, want)
	}
	named := startProgram(t, t.TempDir(), nil, "serve", "--release", "v1", "-c", s.file("onbeat.yaml", configText(s.url, testredis.Namespace(t), "http://127.0.0.1:1")))
	named.logs("leads")
	if strings.Contains(named.errs.String(), warning) {
		t.Error("it warns though a release is named")
	}
}
