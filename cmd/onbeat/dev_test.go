package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// needServer skips the test if there is no redis-server, unless one is required.
func needServer(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
		t.Fatal("ONBEAT_REQUIRE_REAL=1, and there is no redis-server on PATH")
	}
	t.Skip("no redis-server on PATH")
}

var devURL = regexp.MustCompile(`URL: file:([^\s,]+),`)

// urlOf returns the Redis URL that a dev has written to a folder.
func urlOf(t *testing.T, dir, said string) string {
	t.Helper()
	file := devURL.FindStringSubmatch(said)
	if file == nil {
		t.Fatalf("it names no file with the URL: %s", said)
	}
	url, err := redisURL("file:" + filepath.Join(dir, file[1]))
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// clientOf returns a client of that Redis.
func clientOf(t *testing.T, dir, said string) *admin.Admin {
	t.Helper()
	return openInside(t, urlOf(t, dir, said), "dev").Admin()
}

// awaitHeartbeat waits until the sample's schedule runs.
func awaitHeartbeat(t *testing.T, c *admin.Admin) {
	t.Helper()
	testredis.Eventually(t, time.Minute, func() error {
		s, err := c.Schedules.Get(t.Context(), "heartbeat")
		if err == nil && s.Runs == 0 {
			err = errors.New("it has not run")
		}
		return err
	}, "the sample's heartbeat runs")
}

func (p *program) interrupt() {
	p.Helper()
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		p.Fatal(err)
	}
}

func TestDev_keepsWhatWasAppliedOverARestart(t *testing.T) {
	t.Parallel()
	needServer(t)
	dir := t.TempDir()
	first := startProgram(t, dir, nil, "dev")
	said := first.says("Try in another terminal")
	if !strings.Contains(said, "child process, data in .onbeat/") {
		t.Errorf("it does not say which Redis: %s", said)
	}
	c := clientOf(t, dir, said)
	awaitHeartbeat(t, c)
	want := producer.Schedule{Name: "mine", Rule: schedule.Rule{Every: time.Hour}, Task: "echo"}
	if _, err := c.Schedules.Apply(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	before, err := c.Schedules.Get(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	first.interrupt()
	if code := first.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d after an interrupt, want %d", code, exitFine)
	}

	second := startProgram(t, dir, nil, "dev")
	c = clientOf(t, dir, second.says("Try in another terminal"))
	after, err := c.Schedules.Get(t.Context(), "mine")
	if err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	if !after.Anchor.Equal(before.Anchor) {
		t.Errorf("the anchor moved from %v to %v", before.Anchor, after.Anchor)
	}
	if _, err := c.Schedules.Get(t.Context(), "heartbeat"); err != nil {
		t.Errorf("the sample: %v", err)
	}
	second.interrupt()
	second.exit(20 * time.Second)
}

func TestDev_refusesASecondInTheSameFolder(t *testing.T) {
	t.Parallel()
	needServer(t)
	dir := t.TempDir()
	startProgram(t, dir, nil, "dev").says("Try in another terminal")
	second := startProgram(t, dir, nil, "dev")
	if code := second.exit(20 * time.Second); code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	if text := second.errs.String(); !strings.Contains(text, "in use") || strings.Count(text, "\n") != 1 {
		t.Errorf("stderr = %q, want one line that says it is in use", text)
	}
}

func TestDev_runsWithoutARedisServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProgram(t, dir, []string{"PATH="}, "dev")
	said := p.says("Try in another terminal")
	if !strings.Contains(said, "in-process Redis (miniredis; data is lost at exit)") {
		t.Errorf("it does not say which Redis: %s", said)
	}
	c := clientOf(t, dir, said)
	awaitHeartbeat(t, c)
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d after an interrupt, want %d", code, exitFine)
	}
}

// dev leaves the databases of a config alone, and says so. It also says that it sends notifications.
func TestDev_leavesTheDatabasesOfAConfigAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "namespace: dev\narchive: {url: 'sqlite://archive.db'}\noutbox: {url: 'sqlite://outbox.db'}\n" +
		"notify:\n  - {name: ops, url: 'http://127.0.0.1:1/hook'}\n"
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, nil, "dev", "--in-process", "-c", "mine.yaml")
	said := p.says("Try in another terminal")
	for _, want := range []string{"does not use the archive.url", "does not use the outbox.url", "sends notifications to the targets"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say that it %s: %s", want, said)
		}
	}
	c := clientOf(t, dir, said)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if list, err := c.Instances.List(t.Context()); err == nil && len(list.Items) == 1 && list.Items[0].Leader {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the instance does not lead")
		}
	}
	for _, name := range []string{"archive.db", "outbox.db"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("it made %s", name)
		}
	}
}

func TestDev_refuses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"another redis":              {"--redis", "redis://127.0.0.1:1/0"},
		"a config that is not there": {"-c", "nowhere.yaml"},
		"a namespace with a brace":   {"--namespace", "a{b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, t.TempDir(), nil, append([]string{"dev", "--in-process"}, args...)...)
			if code := p.exit(20 * time.Second); code != exitAsked {
				t.Errorf("exit %d, want %d", code, exitAsked)
			}
			if text := p.errs.String(); strings.Count(text, "\n") != 1 {
				t.Errorf("stderr = %q, want one line", text)
			}
		})
	}
}

func TestDev_isFoundInItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(config, []byte("namespace: mine\nschedules: [{name: tick, every: 1h, task: echo}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, nil, "dev", "--in-process", "-c", "mine.yaml")
	said := p.says("From another folder, add --redis ")
	if !strings.Contains(said, "Try in another terminal, in this folder:\n") || strings.Count(p.out.String(), "--redis") != 1 {
		t.Errorf("it asks for flags that no command needs here: %s", said)
	}
	awaitSchedule(t, dir, "tick")
	if _, err := os.Stat(filepath.Join(dir, ".onbeat", "dev.yaml")); err == nil {
		t.Error("a sample was written though a config was named")
	}
	_, added, _ := strings.Cut(p.out.String(), "From another folder, add ")
	added, _, _ = strings.Cut(added, "\n")
	away := startProgram(t, t.TempDir(), nil, append([]string{"schedules", "list"}, strings.Fields(added)...)...)
	if code := away.exit(20 * time.Second); code != exitFine || cells(away.out.String(), "tick") == nil {
		t.Errorf("from another folder, with %s: exit %d: %s%s", added, code, away.out.String(), away.errs.String())
	}
	const note = "onbeat: using the Redis of onbeat dev, file:.onbeat/redis.url, and namespace mine\n"
	beside := startProgram(t, dir, nil, "schedules", "list")
	if code := beside.exit(20 * time.Second); code != exitFine || cells(beside.out.String(), "tick") == nil || beside.errs.String() != note {
		t.Errorf("beside it: exit %d: %s%s", code, beside.out.String(), beside.errs.String())
	}
	for name, c := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"a flag":          {nil, []string{"--redis", "redis://127.0.0.1:1", "-n", "mine"}, "redis://127.0.0.1:1"},
		"the environment": {[]string{"ONBEAT_REDIS_URL=redis://127.0.0.1:1", "ONBEAT_NAMESPACE=mine"}, nil, "redis://127.0.0.1:1"},
		"a config":        {nil, []string{"-c", "mine.yaml"}, defaultRedis},
	} {
		q := startProgram(t, dir, c.env, append([]string{"doctor", "--json"}, c.args...)...)
		q.exit(20 * time.Second)
		if text := q.errs.String() + q.out.String(); strings.Contains(text, "onbeat dev,") || !strings.Contains(text, c.want) {
			t.Errorf("%s does not go before: %s", name, text)
		}
	}
	p.interrupt()
	p.exit(20 * time.Second)
	after := startProgram(t, dir, nil, "schedules", "list")
	if code := after.exit(20 * time.Second); code != exitAsked || !strings.Contains(after.errs.String(), "namespace: missing") {
		t.Errorf("after it: exit %d: %s", code, after.errs.String())
	}
}

// awaitSchedule waits until the schedules of the dev in a folder are declared.
func awaitSchedule(t *testing.T, dir, name string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p := startProgram(t, dir, nil, "schedules", "show", name)
		if p.exit(20*time.Second) == exitFine {
			return
		}
	}
	t.Fatalf("schedule %s is not declared", name)
}

func TestFound_refusesAFolderThatOthersMayWriteTo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode here")
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, devDir)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, devURLFile), []byte("redis://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, nil, "schedules", "list", "-n", "x")
	if code := p.exit(20 * time.Second); code != exitAsked || !strings.Contains(p.errs.String(), "others may write to it") {
		t.Errorf("exit %d: %s", code, p.errs.String())
	}
}

func TestDev_opensTheDashboard(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	browser, config := filepath.Join(dir, "browser"), filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$1\" > opened.new && mv opened.new opened\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("namespace: dev\napi: {listen: \"127.0.0.1:0\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, []string{"BROWSER=" + browser}, "dev", "--in-process", "--open", "-c", config)
	said := p.says("Dashboard: ")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		url, err := os.ReadFile(filepath.Join(dir, "opened"))
		if err == nil && strings.HasPrefix(string(url), "http://127.0.0.1:") && strings.Contains(p.out.String(), strings.TrimSpace(string(url))) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("opened %q, %v: %s", url, err, said)
		}
	}
	p.interrupt()
	p.exit(20 * time.Second)

	p = startProgram(t, dir, []string{"BROWSER=" + filepath.Join(dir, "nowhere")}, "dev", "--in-process", "--open", "-c", config)
	p.says("Try in another terminal")
	for end := time.Now().Add(10 * time.Second); !strings.Contains(p.errs.String(), "yourself"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("without a browser: %s", p.errs.String())
		}
	}
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("without a browser: exit %d", code)
	}
}
