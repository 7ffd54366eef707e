package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// A file without the key schedules declares nothing; an empty list declares that there are none.
func TestParse_noSchedulesAreNotAnEmptyList(t *testing.T) {
	t.Parallel()
	for text, isNil := range map[string]bool{
		"namespace: shop\n":                  true,
		"namespace: shop\nschedules:\n":      true,
		"namespace: shop\nschedules: null\n": true,
		"namespace: shop\nschedules: []\n":   false,
		"[]":                                 false,
	} {
		f, err := Parse("x.yaml", []byte(text), testEnv())
		if err != nil || (f.Schedules == nil) != isNil || len(f.Schedules) > 0 {
			t.Errorf("%q: %#v, %v", text, f.Schedules, err)
		}
	}
}

const goodConfig = `
redis: {url: "redis://user:${SECRET}@127.0.0.1:6379/0"}
namespace: shop
release: 1.10
lead: sticky
consume: release
standby: true
concurrency: 20
queues: {default: 2, low: 1}
strict: true
limits: {http: 5}
lease: 10s
min_ready: 10s
drain: 0s
payload_limit: 2048
keep: {dead: 1, done: 2, history: 3, events: 4}
archive: {url: "postgres://onbeat:${ARCHIVE}@db/onbeat", keep: 60d, buffer: 64MiB, output: 0}
api: {listen: 127.0.0.1:8080}
http: {deny_private: true, timeout: 5s, max_redirects: -1, redirect_body: true, max_retry_after: 1d, idle_per_host: 3, idle_timeout: 1h}
log: {level: debug, format: json}
schedules:
  - name: warm-cache
    every: 1s
    task: http
    payload: {method: POST, url: https://shop.example/warm, headers: {}, body: "", timeout: 5s, expect: [200, 204]}
    missed: once
    overlap: skip
    jitter: 100ms
    start: aligned
    max_runs: 7
  - &report
    name: report
    cron: "30 2 * * MON-FRI"
    timezone: Europe/Berlin
    dst: {gap: after, overlap: first}
    until: 2030-01-31T09:00:00Z
    task: echo
    payload: [1, 2.5, {b: yes, a: ~}]
    missed: all
    catch_up: 2h
    queue: low
    priority: low
    timeout: 1m
    max_attempts: 4
    backoff: {base: 2s, cap: 1m}
  - {<<: *report, name: again, backoff: 3s}
`

func testEnv(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// checked reads a config and checks all of it, as a command does.
func checked(name, text string, env func(string) string) (*File, error) {
	f, err := Parse(name, []byte(text), env)
	if err != nil {
		return nil, err
	}
	if err := f.Unset(); err != nil {
		return nil, err
	}
	return f, f.Check()
}

func TestConfig_saysEverything(t *testing.T) {
	t.Parallel()
	c, err := checked("shop.yaml", goodConfig, testEnv("SECRET", "s3cret", "ARCHIVE", "4rch"))
	if err != nil {
		t.Fatal(err)
	}
	d := c.Dispatcher
	if want := (Archive{URL: "postgres://onbeat:4rch@db/onbeat", Keep: 60 * 24 * time.Hour, Buffer: 64 << 20, Output: -1}); c.Archive != want {
		t.Errorf("archive %+v", c.Archive)
	}
	if c.Redis.URL != "redis://user:s3cret@127.0.0.1:6379/0" || d.Release != "1.10" || d.Concurrency != 20 || d.Queues["default"] != 2 {
		t.Errorf("%+v", c)
	}
	if d.Namespace != "shop" || d.Lead != "sticky" || d.Consume != "release" || !d.Standby || !d.Strict || d.Limits["http"] != 5 ||
		d.Lease != 10*time.Second || d.MinReady != 10*time.Second || d.PayloadLimit != 2048 {
		t.Errorf("%+v", d)
	}
	if d.Drain >= 0 {
		t.Errorf("drain 0s means not at all, got %v", d.Drain)
	}
	if want := (onbeat.Caps{Dead: 1, Done: 2, History: 3, Events: 4}); d.Caps != want {
		t.Errorf("caps %+v", d.Caps)
	}
	if h := c.Handlers.HTTP; !h.DenyPrivate || h.Timeout != 5*time.Second || h.MaxRedirects != -1 || !h.RedirectBody || h.MaxRetryAfter != 24*time.Hour || h.IdlePerHost != 3 || h.IdleTimeout != time.Hour {
		t.Errorf("http %+v", h)
	}
	if c.API.Listen != "127.0.0.1:8080" || c.Log.Threshold() != zerolog.DebugLevel || c.Log.Format != "json" {
		t.Errorf("listen %q log %+v", c.API.Listen, c.Log)
	}
	var names []string
	by := map[string]producer.Schedule{}
	for _, s := range c.Schedules {
		names = append(names, s.Name)
		by[s.Name] = s
	}
	if got := strings.Join(names, " "); got != "warm-cache report again" {
		t.Fatalf("schedules %q", got)
	}
	if s := by["report"]; string(s.Payload) != `[1,2.5,{"a":null,"b":"yes"}]` || s.Backoff.Cap.String() != "1m0s" || s.Priority.String() != "low" || s.MaxAttempts != 4 {
		t.Errorf("%+v payload %s", s, s.Payload)
	}
	if s := by["again"]; s.Cron != by["report"].Cron || s.Backoff.Base.String() != "3s" || s.Backoff.Cap != 0 {
		t.Errorf("the merged schedule is %+v", s)
	}
}

// Each refusal is one line with file, line, field and value, and shows no password.
var badConfigs = []struct{ yaml, want string }{
	{"namespace: x\nconcurency: 5\n", "x.yaml:2: concurency: "},
	{"redis: {uri: x}\n", "x.yaml:1: redis.uri: "},
	{"schedules:\n  - name: a\n    evry: 1s\n    task: echo\n", "x.yaml:3: schedules[0].evry: "},
	{"schedules:\n  - {name: a, every: 1s, task: echo, backoff: {bse: 1s}}\n", "x.yaml:2: schedules[0].backoff.bse: "},
	{"keep: {wombat: 1}\n", "x.yaml:1: keep.wombat: "},
	{"concurrency: many\n", `x.yaml:1: concurrency "many": `},
	{"concurrency: -1\n", `x.yaml:1: concurrency "-1": `},
	{"standby: 1\n", `x.yaml:1: standby "1": `},
	{"concurrency: 0\n", `x.yaml:1: concurrency "0": `},
	{"lease: 0s\n", `x.yaml:1: lease "0s": `},
	{"http: {max_redirects: 0}\n", `x.yaml:1: http.max_redirects "0": `},
	{"schedules:\n  - {name: a, every: 1s, task: echo, timeout: 0s}\n", `x.yaml:2: schedules[0].timeout "0s": `},
	{"schedules:\n  - {name: a, every: 1s, task: echo, backoff: 0s}\n", `x.yaml:2: schedules[0].backoff "0s": `},
	{"queues: 5\n", "x.yaml:1: queues: "},
	{"notify: [https://hooks.example/SECRET]\n", "x.yaml:1: notify[0]: "},
	{"schedules: {name: a}\n", "x.yaml:1: schedules: "},
	{"http: {pass_env: API_TOKEN=SECRET}\n", "x.yaml:1: http.pass_env: "},
	{"namespace: [a]\n", "x.yaml:1: namespace: "},
	{"queues: {low: 0}\n", `x.yaml:1: queues.low "0": `},
	{"limits: {http: 0}\n", `x.yaml:1: limits.http "0": `},
	{"namespace: a{b}\n", `x.yaml:1: namespace "a{b}": `},
	{"\nnamespace: ''\n", "x.yaml:2: namespace: "},
	{"redis:\n  url: http://u:hunter2@h\n", `x.yaml:2: redis.url "…": `},
	{"redis:\n  url: redis://:hunter2@h\n  tls_ca: /nowhere\n", `x.yaml:3: redis.tls_ca "/nowhere": `},
	{"redis:\n  url: rediss://:hunter2@h\n  tls_ca: /nowhere\n", `x.yaml:3: redis.tls_ca "/nowhere": `},
	{"redis:\n  url: rediss://h\n  tls_cert: /nowhere\n", "x.yaml:1: redis.tls_key: "},
	{"redis:\n  url: redis://:${NOPE}@h\n", `x.yaml:2: redis.url "${NOPE}": `},
	{"archive:\n  url: mysql://u:hunter2@h/d\n", `x.yaml:2: archive.url "…": `},
	{"archive: {url: 'sqlite::memory:'}\n", `x.yaml:1: archive.url "sqlite::memory:": `},
	{"archive: {url: 'sqlite:///a', keep: 1h}\n", `x.yaml:1: archive.keep "1h0m0s": `},
	{"archive: {url: 'sqlite:///a', buffer: 0}\n", `x.yaml:1: archive.buffer "0": `},
	{"archive: {url: 'sqlite:///a', buffer: 512MB}\n", `x.yaml:1: archive.buffer "512MB": `},
	{"archive: {url: 'sqlite:///a', buffer: -1MiB}\n", `x.yaml:1: archive.buffer "-1MiB": `},
	{"archive: {url: 'sqlite:///a', output: 20000}\n", `x.yaml:1: archive.output "20000": `},
	{"archive: {uri: x}\n", "x.yaml:1: archive.uri: "},
	{"lease: 5\n", `x.yaml:1: lease "5": `},
	{"drain: -5s\n", `x.yaml:1: drain "-5s": `},
	{"lead: oldest\n", `x.yaml:1: lead "oldest": `},
	{"consume: some\n", `x.yaml:1: consume "some": `},
	{"api: {listen: nowhere}\n", `x.yaml:1: api.listen "nowhere": `},
	{"api: {listen: 'h:99999'}\n", `x.yaml:1: api.listen "h:99999": `},
	{"api:\n  listen: 0.0.0.0:80\n", `x.yaml:2: api.listen "0.0.0.0:80": `},
	{"api:\n  tokens:\n    - {name: ci, role: admin, token: 0123456789abcdef}\n", "x.yaml:3: api.tokens[0].token: "},
	{"api:\n  tokens:\n    - {name: ci, role: admin, token: '${A}', token_file: a}\n", "x.yaml:3: "},
	{"api:\n  tokens:\n    - {name: ci, token: '${A}'}\n", "x.yaml:3: api.tokens[0].role: "},
	{"api:\n  tokens:\n    - name: ci\n      role: root\n      token: ${A}\n", `x.yaml:4: api.tokens[0].role "root": `},
	{"api:\n  tokens:\n    - {name: ci, role: viewer, token: '${A}'}\n    - {name: ci, role: admin, token: '${B}'}\n", `x.yaml:4: api.tokens[1].name "ci": `},
	{"api:\n  tokens:\n    - {name: ci, role: operator, token: '${A}', queues: ['a b']}\n", `x.yaml:3: api.tokens[0].queues "a b": `},
	{"api: {tls: {cert: a}}\n", "x.yaml:1: api.tls.key: "},
	{"api: {tls: {client_ca: a}}\n", "x.yaml:1: api.tls.cert: "},
	{"log: {level: loud}\n", `x.yaml:1: log.level "loud": `},
	{"log: {format: xml}\n", `x.yaml:1: log.format "xml": `},
	{"payload_limit: -1\n", `x.yaml:1: payload_limit "-1": `},
	{"keep:\n  dead: 0\n", `x.yaml:2: keep.dead "0": `},
	{"keep: {events: 50000}\n", `x.yaml:1: keep.events "50000": `},
	{"http: {idle_per_host: -1}\n", `x.yaml:1: http.idle_per_host "-1": `},
	{"http: {idle_timeout: -1s}\n", `x.yaml:1: http.idle_timeout "-1s": `},
	{"schedules:\n  - {name: a, task: echo}\n", "x.yaml:2: schedules[0].every: "},
	{"schedules:\n  - name: a\n    every: 1s\n    cron: '* * * * *'\n    task: echo\n", `x.yaml:3: schedules[0].every "1s": `},
	{"schedules:\n  - {name: a, task: echo, cron: '61 * * * *'}\n", `x.yaml:2: schedules[0].cron minute "61": `},
	{"schedules:\n  - name: a\n    cron: * 2 * * *\n    task: echo\n", "x.yaml:3: cron: "},
	{"schedules:\n  - name: a\n    cron: */5 * * * *\n    task: echo\n", "x.yaml:3: cron: "},
	{"schedules:\n  - name: a\n    task: echo\n    cron: * 2 * * *", "x.yaml:4: cron: "},
	{"schedules:\n  - {name: a, cron: * 2 * * *, task: echo}\n", "x.yaml:2: cron: "},
	{"schedules:\n  - {name: a, cron: *nightly, task: echo}\n", "x.yaml:2: "},
	{"schedules:\n  - {name: a, task: echo, cron: '0 0 31 2 *'}\n", "x.yaml:2: "},
	{"schedules:\n  - name: a\n    task: echo\n    cron: '0 0 * * *'\n    timezone: Mars/Olympus\n", `x.yaml:5: schedules[0].timezone "Mars/Olympus": `},
	{"schedules:\n  - name: a\n    task: echo\n    cron: '0 0 * * *'\n    dst: {gap: jump}\n", `x.yaml:5: schedules[0].dst gap "jump": `},
	{"schedules:\n  - {name: a, task: echo, every: 1s}\n  - {name: a, task: echo, every: 2s}\n", `x.yaml:3: schedules[1].name "a": `},
	{"schedules:\n  - {name: a, every: 1s}\n", "x.yaml:2: schedules[0].task: "},
	{"schedules:\n  - {name: a, every: 1s, task: htpt}\n", `x.yaml:2: schedules[0].task "htpt": `},
	{"schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload:\n      method: POST\n", "x.yaml:5: schedules[0].payload.url: "},
	{"schedules:\n  - {name: a, every: 1s, task: http}\n", "x.yaml:2: "},
	{"schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload: {url: 'http://h', urll: x}\n", "x.yaml:5: schedules[0].payload.urll: "},
	{"schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload: {url: 'http://h', wombat: x}\n", "x.yaml:5: schedules[0].payload.wombat: "},
	{"payload_limit: 10\nschedules:\n  - {name: a, every: 1s, task: echo, payload: aaaaaaaaaaaaaaaa}\n", "x.yaml:3: schedules[0].payload: "},
	{"schedules:\n  - {name: a, every: 1s, task: echo, payload: .nan}\n", "x.yaml:2: schedules[0].payload: "},
	{"schedules:\n  - {name: a, every: 1s, task: echo, until: 2030-01-01}\n", `x.yaml:2: schedules[0].until "2030-01-01": `},
	{"schedules:\n  - {name: a, every: 1s, task: echo, priority: urgent}\n", `x.yaml:2: schedules[0].priority "urgent": `},
	{"schedules:\n  - {name: a, every: 1s, task: echo, missed: never}\n", `x.yaml:2: schedules[0].missed "never": `},
	{"schedules:\n  - {name: a, every: 1s, task: echo, max_attempts: 0}\n", `x.yaml:2: schedules[0].max_attempts "0": `},
	{"a: b: c\n", "x.yaml:1: "},
	{"redis:\n\turl: x\n", "x.yaml:2: "},
	{"lease: 5s\nlease: 6s\n", "x.yaml:2: "},
	{"lease: 5s\n---\nlease: 6s\n", "x.yaml:3: "},
	{"# nothing\n", "x.yaml: "},
	{"- a\n", "x.yaml:1: "},
	{"a\x00b", "x.yaml: "},
}

func TestConfig_refusesInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range badConfigs {
		_, err := checked("x.yaml", c.yaml, testEnv())
		if !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %v, want task.ErrInvalid", c.yaml, err)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, c.want) || strings.ContainsRune(got, '\n') || strings.Contains(got, "hunter2") {
			t.Errorf("%q: %s, want %s", c.yaml, got, c.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(goodConfig)
	for _, c := range badConfigs {
		f.Add(c.yaml)
	}
	for _, c := range hostileConfigs() {
		if len(c.yaml) < 2000 {
			f.Add(c.yaml)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var err error
		within(t, "config", 10*time.Second, 2000, func() {
			_, err = checked("x.yaml", text, testEnv())
		})
		switch {
		case err == nil:
		case !errors.Is(err, task.ErrInvalid):
			t.Errorf("%q: does not match ErrInvalid: %v", text, err)
		case strings.ContainsAny(wording.OneLine(err.Error()), "\r\n"):
			t.Errorf("%q: more than one line: %v", text, err)
		}
	})
}
