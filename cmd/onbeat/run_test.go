package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

func TestRun_asksAgainInOneLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args string
		want string
	}{
		{"frobnicate", "unexpected argument frobnicate (see onbeat --help)"},
		{"help frobnicate", "unexpected argument frobnicate (see onbeat --help)"},
		{"schedules", "expected one of"},
		{"schedules", "(see onbeat schedules --help)"},
		{"instances --colour", "unknown flag --colour"},
		{"schedules apply --colour x", "unknown flag --colour (see onbeat schedules apply --help)"},
		{"schedules show", "(see onbeat schedules show --help)"},
		{"tasks list --limit x", "--limit"},
		{"tasks list --limit x", "(see onbeat tasks list --help)"},
		{"version --redis redis://h", "--redis means nothing to onbeat version (leave it out)"},
		{"demo -n x", "--namespace means nothing to onbeat demo (leave it out)"},
		{"lock run x --json -- true", "--json means nothing to onbeat lock run (leave it out)"},
		{"tasks list --limit 0", `limit "0": out of range`},
		{"tasks list --state odd", `state "odd": unknown state`},
		{"tasks list --after abc", "not a cursor of this list"},
		{"tasks list --state due --after !!", `after "!!": not a cursor`},
		{"tasks retry", "which tasks?"},
		{"tasks retry x --type y", "--type works only with --all"},
		{"events --since whenever", `since "whenever": not a time, a date or a duration`},
		{"events --limit 0", `limit "0"`},
		{"schedules backfill x --from never", `from "never"`},
		{"schedules backfill x --from 1h --to 1x", `to "1x"`},
		{"schedules trigger x --payload {", "payload: not JSON"},
		{"completion tcsh", `shell "tcsh": unknown shell`},
		{"instances --redis http://u:hunter2@h", `redis.url "…": unknown scheme`},
		{"instances --namespace a{b}", `namespace "a{b}"`},
		{"instances -c /nowhere.yaml", `config "/nowhere.yaml": no such file`},
		{"serve -c /nowhere.yaml", `config "/nowhere.yaml": no such file`},
		{"serve --release \x01", "release"},
		{"schedules apply /nowhere.yaml", `file "/nowhere.yaml"`},
		{"enqueue --file /nowhere.jsonl", `file "/nowhere.jsonl"`},
		{"enqueue --file /", "is a directory"},
	} {
		s.fails(2, strings.Fields(c.args), c.want)
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

func TestRun_takesRedisAndNamespaceFromTheConfig(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\n")
	r := runWith(t.Context(), testEnv(), "", "schedules", "list", "-c", file)
	if r.code != 0 || !strings.Contains(r.out, "no schedules in "+s.ns) {
		t.Errorf("%+v", r)
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
		ctx, done := context.WithTimeout(t.Context(), 500*time.Millisecond)
		r := runWith(ctx, s.env("ONBEAT_RELEASE", c.env), "", append([]string{"serve", "-c", file}, c.args...)...)
		done()
		if strings.Contains(r.err, "ONBEAT_RELEASE overrides the release of the config") != c.said {
			t.Errorf("%+v: %+v", c, r)
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

func TestHelp_isOnStdoutAndFine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, args := range []string{"--help", "serve --help", "schedules --help", "schedules apply --help"} {
		if out := s.must(strings.Fields(args)...); !strings.Contains(out, "Usage: onbeat") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestHelp_isWhatIsUsual(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	whole := s.must("--help")
	if r := s.run(""); r.code != exitAsked || r.out != "" || r.err != whole {
		t.Errorf("onbeat alone: %+v", r)
	}
	if got := s.must("help"); got != whole {
		t.Errorf("onbeat help: %s", got)
	}
	if got, want := s.must("help", "schedules", "apply"), s.must("schedules", "apply", "--help"); got != want {
		t.Errorf("onbeat help schedules apply: %s", got)
	}
	if got, want := s.must("--version"), s.must("version"); got != want {
		t.Errorf("onbeat --version: %s", got)
	}
}

func TestHelp_showsNoFlagThatMeansNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct{ command, shown, hidden string }{
		{"tasks list", "--config --redis --namespace --json", ""},
		{"version", "--json", "--config --redis --namespace"},
		{"completion", "--help", "--config --redis --namespace --json"},
		{"demo", "--json", "--config --redis --namespace"},
		{"dev", "--config --namespace --json", "--redis"},
		{"serve", "--config --redis --namespace", "--json"},
		{"lock run", "--config --redis --namespace", "--json"},
		{"conformance", "--config --redis --json", "--namespace"},
	} {
		_, flags, _ := strings.Cut(s.must(strings.Fields(c.command+" --help")...), "Flags:")
		flags, _, _ = strings.Cut(flags, "Examples:")
		for _, f := range strings.Fields(c.shown) {
			if !strings.Contains(flags, f) {
				t.Errorf("%s: %s is not shown", c.command, f)
			}
		}
		for _, f := range strings.Fields(c.hidden) {
			if strings.Contains(flags, f) {
				t.Errorf("%s: %s is shown", c.command, f)
			}
		}
	}
}

// Each command has examples, and the parser accepts each example.
func TestHelp_hasExamplesThatParse(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&cli{}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(examples)
	for _, m := range commandsOf(parser.Model.Node) {
		path := strings.TrimSpace(strings.TrimPrefix(m.path, "onbeat"))
		if examples[path] == "" {
			t.Errorf("onbeat %s has no example", path)
		}
		delete(left, path)
	}
	if len(left) > 0 {
		t.Errorf("examples of no command: %v", left)
	}
	for path, list := range examples {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			args := exampleArgs(line)
			if path != "" && !strings.HasPrefix(strings.Join(args, " ")+" ", path+" ") {
				t.Errorf("%s: another command: %s", path, line)
			}
			if args = usual(args); slices.Contains(args, "--help") {
				continue
			}
			parser, err := newParser(&cli{}, io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			command, err := parser.Parse(args)
			if err == nil {
				err = refuseIgnored(command)
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// exampleArgs returns the arguments of onbeat in a line of a shell.
func exampleArgs(line string) []string {
	_, line, _ = strings.Cut(line, "onbeat ")
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	var args []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
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
		for _, word := range []string{"backfill", "completion", "--namespace", "dst-gap", "due"} {
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
		{"onbeat schedules re", "resume"},
		{"onbeat --json tasks l", "list"},
		{"onbeat tasks list --sta", "--state"},
		{"onbeat tasks list --state d", "due dead done"},
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

func TestPreview_explainsDaylightSaving(t *testing.T) {
	t.Parallel()
	r := runWith(t.Context(), testEnv(), "", "preview", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2026-03-28T00:00:00Z", "--count", "3")
	if r.code != 0 || !strings.Contains(r.out, "2026-03-29T03:00:00+02:00  CEST") || !strings.Contains(r.out, "02:30 does not exist") {
		t.Errorf("%+v", r)
	}
	var v struct {
		Rule  string
		Slots []admin.Slot
	}
	r = runWith(t.Context(), testEnv(), "", "preview", "--every", "90s", "--jitter", "10s", "--from", "2026-01-01T00:00:00Z", "--count", "4", "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || len(v.Slots) != 4 {
		t.Fatalf("%v: %+v", err, r)
	}
	for i, l := range v.Slots {
		if want := time.Date(2026, 1, 1, 0, 0, 90*i, 0, time.UTC); !l.Slot.Equal(want) || l.Due.Before(l.Slot) || l.Due.Sub(l.Slot) >= 10*time.Second {
			t.Errorf("slot %d is %s, due %s; want %s", i, l.Slot, l.Due, want)
		}
	}
	if r := runWith(t.Context(), testEnv(), "", "preview", "--every", "1h", "--jitter", "5m"); !strings.Contains(r.out, "DUE") {
		t.Errorf("no column for the jitter: %+v", r)
	}
}

func TestPreview_fromIsInclusive(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string][]string{"cron": {"--cron", "0 * * * *"}, "every": {"--every", "1h", "--start", "aligned"}, "every from": {"--every", "1h"}} {
		r := runWith(t.Context(), testEnv(), "", append([]string{"preview", "--from", "2026-01-01T05:00:00Z", "--count", "1"}, rule...)...)
		if cells(r.out, "2026-01-01T05:00:00Z") == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestPreview_ofASchedule(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 7m, jitter: 1m, start: aligned, task: echo}, {name: few, every: 1h, max_runs: 2, task: echo}]\n"))
	var v struct {
		Rule  string
		Slots []admin.Slot
	}
	from := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s.json(&v, "preview", "a", "--count", "20", "--from", from.Format(time.RFC3339))
	if len(v.Slots) != 20 || !strings.Contains(v.Rule, "7m") {
		t.Fatalf("%+v", v)
	}
	first := v.Slots[0].Slot
	for i, l := range v.Slots {
		if want := first.Add(time.Duration(i) * 7 * time.Minute); !l.Slot.Equal(want) || l.Slot.Before(from) || l.Slot.Sub(from) > 20*7*time.Minute {
			t.Errorf("slot %d is %s, want %s", i, l.Slot, want)
		}
	}
	var shown struct{ Upcoming []admin.Slot }
	s.json(&shown, "schedules", "show", "a")
	if s.json(&v, "preview", "a"); len(v.Slots) != 10 || !v.Slots[0].Slot.Equal(shown.Upcoming[0].Slot) || !v.Slots[0].Due.Equal(shown.Upcoming[0].Due) {
		t.Errorf("preview = %+v, and show = %+v", v.Slots[0], shown.Upcoming[0])
	}
	if s.json(&v, "preview", "few"); len(v.Slots) != 2 {
		t.Errorf("of a schedule with two runs: %+v", v.Slots)
	}
	s.must("schedules", "pause", "a")
	if r := s.run("", "preview", "a"); r.code != exitFine || !strings.Contains(r.err, "a is paused") {
		t.Errorf("of a paused one: %+v", r)
	}
	s.fails(1, []string{"preview", "b"}, `schedule "b": not found`)
	s.fails(2, []string{"preview", "a", "--every", "1s"}, "a schedule and a rule exclude each other")
	s.fails(2, []string{"preview", "a", "--from", "x"}, `from "x": not a time, a date or a duration`)
}

func TestPreview_refuses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "neither every nor cron"},
		{[]string{"--every", "1s", "--cron", "* * * * *"}, "every and cron are both set"},
		{[]string{"--every", "0s"}, "zero"},
		{[]string{"--every", "soon"}, "not a duration"},
		{[]string{"--jitter", "soon", "--every", "1s"}, "not a duration"},
		{[]string{"--cron", "99 * * * *"}, `cron minute "99"`},
		{[]string{"--cron", "0 0 31 2 *"}, "cron"},
		{[]string{"--cron", "* * * * *", "--timezone", "Mars"}, `timezone "Mars": unknown zone`},
		{[]string{"--cron", "* * * * *", "--dst-gap", "jump"}, "unknown policy"},
		{[]string{"--cron", "* * * * *", "--count", "0"}, `count "0"`},
		{[]string{"--cron", "* * * * *", "--from", "x"}, `from "x": not a time, a date or a duration`},
		{[]string{"--cron", "* * * * *", "--until", "x"}, `until "x": not a time, a date or a duration`},
	} {
		s.fails(2, append([]string{"preview"}, c.args...), c.want)
	}
}
