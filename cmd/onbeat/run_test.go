package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestRun_asksAgainInOneLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	silent := s.file("silent.yaml", "api: {listen: 'off'}\n") // the default address may be taken here, which is another line
	for args, want := range map[string]string{
		"frobnicate":                            "onbeat --help",
		"schedules apply --colour x":            "onbeat schedules apply --help",
		"version --redis redis://h":             "--redis",
		"lock run x --json -- true":             "--json",
		"tasks list --limit 0":                  `limit "0"`,
		"tasks list --state odd":                `state "odd"`,
		"tasks list --state waiting --after !!": `after "!!"`,
		"tasks retry":                           "tasks",
		"tasks retry x --type y":                "--type",
		"events --since whenever":               `since "whenever"`,
		"schedules backfill x --from never":     `from "never"`,
		"schedules trigger x --payload {":       "payload",
		"instances --redis http://u:hunter2@h":  `redis.url "…"`,
		"instances --namespace a{b}":            `namespace "a{b}"`,
		"serve -c /nowhere.yaml":                `config "/nowhere.yaml"`,
		"serve --release \x01 -c " + silent:     "release",
		"enqueue --file /":                      "/",
	} {
		s.fails(2, strings.Fields(args), want)
	}
	s.nothingWritten()
}

func TestRun_needsANamespace(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, command := range []string{"instances", "serve", "enqueue echo"} {
		r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", strings.Fields(command)...)
		s.failed(r, 2, command, "namespace: missing", "ONBEAT_NAMESPACE")
	}
}

func TestRun_refusesAnEnvironmentThatSaysOtherwiseThanTheConfig(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	bare := s.file("bare.yaml", "lease: 5s\n")
	file := s.file("c.yaml", "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\n")
	staging := testEnv("ONBEAT_NAMESPACE", "staging")
	elsewhere := testEnv("ONBEAT_REDIS_URL", "redis://:hunter2@elsewhere:6379/0")
	for _, command := range []string{"serve", "schedules list", "lock run job -- true"} {
		args := append([]string{"-c", file}, strings.Fields(command)...)
		code := exitAsked
		if strings.HasPrefix(command, "lock") {
			code = exitUsage
		}
		s.failed(runWith(t.Context(), staging, "", args...), code, command, `c.yaml:2: namespace "`+s.ns+`": ONBEAT_NAMESPACE says "staging" (unset the variable,`, "decide with --namespace)")
		r := runWith(t.Context(), elsewhere, "", args...)
		s.failed(r, code, command, "c.yaml:1: redis.url ", `ONBEAT_REDIS_URL says "redis://:…@elsewhere:6379/0" (unset the variable,`, "decide with --redis)")
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: the password is shown: %s", command, r.err)
		}
	}
	for name, r := range map[string]ran{
		"they agree":    s.run("", "schedules", "list", "-c", file),
		"a flag wins":   runWith(t.Context(), testEnv("ONBEAT_NAMESPACE", "staging", "ONBEAT_REDIS_URL", "redis://elsewhere"), "", "schedules", "list", "-c", file, "-n", s.ns, "--redis", s.url),
		"a silent file": s.run("", "schedules", "list", "-c", bare),
	} {
		if r.code != 0 || !strings.Contains(r.out, "no schedules in "+s.ns) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	named := s.file("redis.url", s.url+"\n")
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", "file:"+named), "", "schedules", "list", "-n", s.ns, "-c", s.file("f.yaml", "redis: {url: 'file:"+named+"'}\n"))
	if r.code != 0 {
		t.Errorf("the same file: %+v", r)
	}
}

func TestServe_saysThatTheEnvironmentNamesAnotherRelease(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "release: v1\n")
	for _, c := range []struct {
		env  string
		args []string
		said bool
	}{{"v2", nil, true}, {"v1", nil, false}, {"", nil, false}, {"v2", []string{"--release", "v3"}, false}} {
		log := starts(t, s.env("ONBEAT_RELEASE", c.env), append([]string{"-c", file}, c.args...)...)
		if strings.Contains(log, "ONBEAT_RELEASE") != c.said {
			t.Errorf("%+v: %s", c, log)
		}
	}
}

func TestRun_failsFastAndKeepsThePasswordWhenRedisIsAway(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for _, addr := range []string{"127.0.0.1:1", mute.Addr().String()} {
		began := time.Now()
		s.fails(1, []string{"instances", "--redis", "redis://u:hunter2@" + addr}, "redis://u:…@"+addr, "unreachable", "is it running?")
		if took := time.Since(began); took > 2*connectTime {
			t.Errorf("%s: gave up after %s", addr, took)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.must("version"); !strings.HasPrefix(out, "onbeat ") || strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
	var v map[string]string
	s.json(&v, "version")
	if v["version"] == "" || v["go"] == "" {
		t.Errorf("%v", v)
	}
}

func TestCompletion_isWhatTheShellsUnderstand(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := s.must("completion", shell)
		for _, word := range []string{"backfill", "completion", "--namespace", "dst-gap", "retrying"} {
			if !strings.Contains(script, strings.TrimPrefix(word, "--")) {
				t.Errorf("%s: %s is not completed", shell, word)
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v: %s", shell, err, out)
		}
	}
}

func TestCompletion_inBashOffersWhatComesNext(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	s := newShell(t)
	script := s.must("completion", "bash")
	for _, c := range []struct{ words, want string }{
		{"onbeat sch", "schedules"},
		{"onbeat schedules re", "revisions revert resume restore"},
		{"onbeat --json tasks l", "list"},
		{"onbeat tasks list --sta", "--state"},
		{"onbeat tasks list --state d", "dead done"},
		{"onbeat tasks list --state p", "planned"},
		{"onbeat tasks list --state r", "running retrying"},
		{"onbeat tasks list --state w", "waiting"},
		{"onbeat completion z", "zsh"},
		{"onbeat preview --dst-overlap b", "both"},
	} {
		words := strings.Fields(c.words)
		ask := script + "\nCOMP_WORDS=(" + c.words + ")\nCOMP_CWORD=" + string(rune('0'+len(words)-1)) + "\n_onbeat\necho ${COMPREPLY[*]}\n"
		check := exec.CommandContext(t.Context(), bash)
		check.Stdin = strings.NewReader(ask)
		out, err := check.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s: offers %q (%v), want %q", c.words, out, err, c.want)
		}
	}
}
