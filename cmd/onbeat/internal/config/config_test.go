package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

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
	if want := (queue.Caps{Dead: 1, Done: 2, History: 3, Events: 4}); d.Caps != want {
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

// Each refusal is one line with file, line, field, value and hint.
var badConfigs = []struct{ name, yaml, want string }{
	{"unknown field", "namespace: x\nconcurency: 5\n", "x.yaml:2: concurency: unknown field (did you mean concurrency?)"},
	{"unknown field of redis", "redis: {uri: x}\n", "x.yaml:1: redis.uri: unknown field (did you mean url?)"},
	{"unknown field of a schedule", "schedules:\n  - name: a\n    evry: 1s\n    task: echo\n", "x.yaml:3: schedules[0].evry: unknown field (did you mean every?)"},
	{"unknown field of backoff", "schedules:\n  - {name: a, every: 1s, task: echo, backoff: {bse: 1s}}\n", "x.yaml:2: schedules[0].backoff.bse: unknown field (did you mean base?)"},
	{"unknown field of keep", "keep: {wombat: 1}\n", "x.yaml:1: keep.wombat: unknown field (known: dead, done, history, events)"},
	{"a word for a number", "concurrency: many\n", `x.yaml:1: concurrency "many": not a whole number`},
	{"a fraction", "concurrency: 1.5\n", `x.yaml:1: concurrency "1.5": not a whole number`},
	{"a quoted number", "concurrency: '5'\n", `x.yaml:1: concurrency "5": not a whole number`},
	{"a huge number", "concurrency: 99999999999999999999\n", `x.yaml:1: concurrency "99999999999999999999": not a whole number`},
	{"negative concurrency", "concurrency: -1\n", `x.yaml:1: concurrency "-1": out of range (1 to 100000; the default is 10)`},
	{"not a bool", "standby: 1\n", `x.yaml:1: standby "1": not true or false`},
	{"a concurrency of zero", "concurrency: 0\n", `x.yaml:1: concurrency "0": zero (leave it out for the default)`},
	{"a lease of zero", "lease: 0s\n", `x.yaml:1: lease "0s": zero (leave it out for the default)`},
	{"no redirects, said wrongly", "http: {max_redirects: 0}\n", `x.yaml:1: http.max_redirects "0": zero`},
	{"a timeout of zero", "schedules:\n  - {name: a, every: 1s, task: echo, timeout: 0s}\n", `x.yaml:2: schedules[0].timeout "0s": zero`},
	{"a backoff of zero", "schedules:\n  - {name: a, every: 1s, task: echo, backoff: 0s}\n", `x.yaml:2: schedules[0].backoff "0s": zero`},
	{"not a mapping", "queues: 5\n", `x.yaml:1: queues: must be a mapping, not a number`},
	{"a URL for a target", "notify: [https://hooks.example/SECRET]\n", `x.yaml:1: notify[0]: must be a mapping, not a plain value`},
	{"not a list", "schedules: {name: a}\n", "x.yaml:1: schedules: must be a list, not a mapping"},
	{"a variable with its value", "http: {pass_env: API_TOKEN=SECRET}\n", "x.yaml:1: http.pass_env: must be a list, not a plain value"},
	{"a list for text", "namespace: [a]\n", "x.yaml:1: namespace: not a plain value"},
	{"a weight of zero", "queues: {low: 0}\n", `x.yaml:1: queues.low "0": out of range (a weight of 1 or more)`},
	{"a limit of zero", "limits: {http: 0}\n", `x.yaml:1: limits.http "0": out of range (1 or more)`},
	{"namespace with braces", "namespace: a{b}\n", `x.yaml:1: namespace "a{b}": has a character that a name cannot have (1 to 128 letters, digits or - _ . : / +)`},
	{"empty namespace", "\nnamespace: ''\n", "x.yaml:2: namespace: empty (1 to 128 letters, digits or - _ . : / +)"},
	{"redis of another scheme", "redis:\n  url: http://u:hunter2@h\n", `x.yaml:2: redis.url "…": unknown scheme (redis://`},
	{"a CA without TLS", "redis:\n  url: redis://:hunter2@h\n  tls_ca: /nowhere\n", `x.yaml:3: redis.tls_ca "/nowhere": redis.url does not use TLS (begin redis.url with rediss)`},
	{"a CA that is not there", "redis:\n  url: rediss://:hunter2@h\n  tls_ca: /nowhere\n", `x.yaml:3: redis.tls_ca "/nowhere": no such file or directory (a PEM file of the CAs`},
	{"a certificate without its key", "redis:\n  url: rediss://h\n  tls_cert: /nowhere\n", `x.yaml:1: redis.tls_key: missing (a PEM file of the key`},
	{"redis with an unset variable", "redis:\n  url: redis://:${NOPE}@h\n", `x.yaml:2: redis.url "${NOPE}": the environment variable is not set (set NOPE, or write the URL out)`},
	{"an archive of another kind", "archive:\n  url: mysql://u:hunter2@h/d\n", `x.yaml:2: archive.url "…": unknown scheme (postgres://`},
	{"an archive in memory", "archive: {url: 'sqlite::memory:'}\n", `x.yaml:1: archive.url "sqlite::memory:": a database in memory ends with its process`},
	{"an archive with an unset variable", "archive:\n  url: postgres://u:${NOPE}@h/d\n", `x.yaml:2: archive.url "${NOPE}": the environment variable is not set (set NOPE, or write the URL out)`},
	{"an archive that keeps nothing", "archive: {url: 'sqlite:///a', keep: 1h}\n", `x.yaml:1: archive.keep "1h0m0s": shorter than a day`},
	{"an archive without a buffer", "archive: {url: 'sqlite:///a', buffer: 0}\n", `x.yaml:1: archive.buffer "0": zero (leave it out for the default)`},
	{"a small buffer", "archive: {url: 'sqlite:///a', buffer: 1000KiB}\n", `x.yaml:1: archive.buffer "1024000": out of range (1MiB or more, such as 512MiB)`},
	{"a buffer of entries", "archive: {url: 'sqlite:///a', buffer: 5000}\n", `x.yaml:1: archive.buffer "5000": out of range (1MiB or more`},
	{"a buffer in other units", "archive: {url: 'sqlite:///a', buffer: 512MB}\n", `x.yaml:1: archive.buffer "512MB": not a size (a whole number of bytes, KiB, MiB, GiB or TiB, such as 512MiB)`},
	{"a buffer beyond all sizes", "archive: {url: 'sqlite:///a', buffer: 9000000TiB}\n", `x.yaml:1: archive.buffer "9000000TiB": out of range`},
	{"a negative buffer", "archive: {url: 'sqlite:///a', buffer: -1MiB}\n", `x.yaml:1: archive.buffer "-1MiB": negative (write it without a minus sign)`},
	{"an output too large", "archive: {url: 'sqlite:///a', output: 20000}\n", `x.yaml:1: archive.output "20000": out of range (at most 16384 bytes)`},
	{"a negative output", "archive: {url: 'sqlite:///a', output: -1}\n", `x.yaml:1: archive.output "-1": negative (write it without a minus sign)`},
	{"unknown field of archive", "archive: {uri: x}\n", "x.yaml:1: archive.uri: unknown field (did you mean url?)"},
	{"lease too short", "lease: 5ms\n", `x.yaml:1: lease "5ms": out of range (500ms to 1h; the default is 5s)`},
	{"lease without unit", "lease: 5\n", `x.yaml:1: lease "5": a number without a unit (write numbers with units`},
	{"negative drain", "drain: -5s\n", `x.yaml:1: drain "-5s": negative (write it without a minus sign)`},
	{"unknown rule", "lead: oldest\n", `x.yaml:1: lead "oldest": unknown rule (newest or sticky)`},
	{"unknown rule of taking work", "consume: some\n", `x.yaml:1: consume "some": unknown rule (newest, release or all)`},
	{"bad address", "api: {listen: nowhere}\n", `x.yaml:1: api.listen "nowhere": not an address (host:port, such as 127.0.0.1:8080, or off)`},
	{"bad port", "api: {listen: 'h:99999'}\n", `x.yaml:1: api.listen "h:99999": has an invalid port`},
	{"open to all", "api:\n  listen: 0.0.0.0:80\n", `x.yaml:2: api.listen "0.0.0.0:80": would let in everybody who reaches it (add api.tokens, listen on 127.0.0.1, or set api.behind_proxy`},
	{"open to all by a name", "api: {listen: ':80'}\n", `x.yaml:1: api.listen ":80": would let in everybody who reaches it`},
	{"a token in the config", "api:\n  tokens:\n    - {name: ci, role: admin, token: 0123456789abcdef}\n", "x.yaml:3: api.tokens[0].token: not a variable (write ${NAME} for an environment variable, or use token_file)"},
	{"no token", "api:\n  tokens:\n    - {name: ci, role: admin}\n", "x.yaml:3: api.tokens[0].token: missing"},
	{"a token twice", "api:\n  tokens:\n    - {name: ci, role: admin, token: '${A}', token_file: a}\n", `x.yaml:3: api.tokens[0].token_file "/`},
	{"no role", "api:\n  tokens:\n    - {name: ci, token: '${A}'}\n", "x.yaml:3: api.tokens[0].role: missing (viewer, operator or admin)"},
	{"unknown role", "api:\n  tokens:\n    - name: ci\n      role: root\n      token: ${A}\n", `x.yaml:4: api.tokens[0].role "root": unknown (viewer, operator or admin)`},
	{"a name twice", "api:\n  tokens:\n    - {name: ci, role: viewer, token: '${A}'}\n    - {name: ci, role: admin, token: '${B}'}\n", `x.yaml:4: api.tokens[1].name "ci": used twice`},
	{"an odd queue of a token", "api:\n  tokens:\n    - {name: ci, role: operator, token: '${A}', queues: ['a b']}\n", `x.yaml:3: api.tokens[0].queues "a b": has a character`},
	{"a certificate of the API without its key", "api: {tls: {cert: a}}\n", "x.yaml:1: api.tls.key: missing"},
	{"a CA of clients without TLS", "api: {tls: {client_ca: a}}\n", "x.yaml:1: api.tls.cert: missing (certificates of clients need TLS)"},
	{"bad level", "log: {level: loud}\n", `x.yaml:1: log.level "loud": unknown level (debug, info, warn or error)`},
	{"bad format", "log: {format: xml}\n", `x.yaml:1: log.format "xml": unknown format (json or console)`},
	{"negative payload limit", "payload_limit: -1\n", `x.yaml:1: payload_limit "-1": negative`},
	{"keep nothing", "keep:\n  dead: 0\n", `x.yaml:2: keep.dead "0": out of range`},
	{"keep more events than there are", "keep: {events: 50000}\n", `x.yaml:1: keep.events "50000": out of range (1 to 10000, which is the default)`},
	{"negative idle_per_host", "http: {idle_per_host: -1}\n", `x.yaml:1: http.idle_per_host "-1": negative`},
	{"negative idle_timeout", "http: {idle_timeout: -1s}\n", `x.yaml:1: http.idle_timeout "-1s": negative`},

	{"no when", "schedules:\n  - {name: a, task: echo}\n", "x.yaml:2: schedules[0].every: neither every nor cron is set (say when:"},
	{"every and cron", "schedules:\n  - name: a\n    every: 1s\n    cron: '* * * * *'\n    task: echo\n", `x.yaml:3: schedules[0].every "1s": every and cron are both set (remove one of them)`},
	{"zero interval", "schedules:\n  - name: a\n    task: echo\n    every: 0s\n", `x.yaml:4: schedules[0].every "0s": zero (the shortest is 1ms)`},
	{"negative interval", "schedules:\n  - {name: a, task: echo, every: -1s}\n", `x.yaml:2: schedules[0].every "-1s": negative (write it without a minus sign)`},
	{"bad cron", "schedules:\n  - {name: a, task: echo, cron: '61 * * * *'}\n", `x.yaml:2: schedules[0].cron minute "61":`},
	{"cron without quotes", "schedules:\n  - name: a\n    cron: * 2 * * *\n    task: echo\n", "x.yaml:3: cron: begins with *, which YAML reads as an alias (write it in quotes, as in cron: \"* 2 * * *\")"},
	{"cron without quotes, stars alone", "schedules:\n  - name: a\n    cron: * * * * *\n    task: echo\n", "x.yaml:3: cron: begins with *, which YAML reads as an alias (write it in quotes, as in cron: \"* 2 * * *\")"},
	{"cron without quotes, a step", "schedules:\n  - name: a\n    cron: */5 * * * *\n    task: echo\n", "x.yaml:3: cron: begins with *, which YAML reads as an alias (write it in quotes, as in cron: \"* 2 * * *\")"},
	{"cron without quotes, at the end", "schedules:\n  - name: a\n    task: echo\n    cron: * 2 * * *", "x.yaml:4: cron: begins with *, which YAML reads as an alias (write it in quotes, as in cron: \"* 2 * * *\")"},
	{"cron without quotes, in braces", "schedules:\n  - {name: a, cron: * 2 * * *, task: echo}\n", "x.yaml:2: cron: begins with *, which YAML reads as an alias (write it in quotes, as in cron: \"* 2 * * *\")"},
	{"cron by an alias of nothing", "schedules:\n  - {name: a, cron: *nightly, task: echo}\n", "x.yaml:2: the alias *nightly has no anchor"},
	{"impossible cron", "schedules:\n  - {name: a, task: echo, cron: '0 0 31 2 *'}\n", `x.yaml:2: schedules[0].cron`},
	{"bad timezone", "schedules:\n  - name: a\n    task: echo\n    cron: '0 0 * * *'\n    timezone: Mars/Olympus\n", `x.yaml:5: schedules[0].timezone "Mars/Olympus": unknown zone (use an IANA name`},
	{"bad dst", "schedules:\n  - name: a\n    task: echo\n    cron: '0 0 * * *'\n    dst: {gap: jump}\n", `x.yaml:5: schedules[0].dst gap "jump": unknown policy (use skip or after)`},
	{"the same name twice", "schedules:\n  - {name: a, task: echo, every: 1s}\n  - {name: a, task: echo, every: 2s}\n", `x.yaml:3: schedules[1].name "a": declared twice (line 2 declares it too; give each schedule its own name)`},
	{"no name", "schedules:\n  - {task: echo, every: 1s}\n", "x.yaml:2: schedules[0].name: empty"},
	{"no task", "schedules:\n  - {name: a, every: 1s}\n", "x.yaml:2: schedules[0].task: missing (name the task type"},
	{"unknown handler", "schedules:\n  - {name: a, every: 1s, task: htpt}\n", `x.yaml:2: schedules[0].task "htpt": no handler for that type (did you mean http? known: echo, exec, http, sleep)`},
	{"http without url", "schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload:\n      method: POST\n", "x.yaml:5: schedules[0].payload.url: missing (an absolute URL such as"},
	{"http without payload", "schedules:\n  - {name: a, every: 1s, task: http}\n", "x.yaml:2: schedules[0].payload"},
	{"a field unknown to http", "schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload: {url: 'http://h', urll: x}\n", "x.yaml:5: schedules[0].payload.urll: unknown field (did you mean url?)"},
	{"a field that resembles none of http", "schedules:\n  - name: a\n    every: 1s\n    task: http\n    payload: {url: 'http://h', wombat: x}\n", "x.yaml:5: schedules[0].payload.wombat: unknown field (known: method, url, headers, body, timeout, expect)"},
	{"payload over the limit", "payload_limit: 10\nschedules:\n  - {name: a, every: 1s, task: echo, payload: aaaaaaaaaaaaaaaa}\n", "x.yaml:3: schedules[0].payload: 18 bytes, the limit is 10 (store the data elsewhere"},
	{"a payload JSON cannot hold", "schedules:\n  - {name: a, every: 1s, task: echo, payload: .nan}\n", "x.yaml:2: schedules[0].payload: cannot be written as JSON"},
	{"bad until", "schedules:\n  - {name: a, every: 1s, task: echo, until: 2030-01-01}\n", `x.yaml:2: schedules[0].until "2030-01-01": not a time (RFC 3339`},
	{"until too late", "schedules:\n  - {name: a, every: 1s, task: echo, until: '1969-01-01T00:00:00Z'}\n", `x.yaml:2: schedules[0].until "1969-01-01T00:00:00Z": out of range`},
	{"bad priority", "schedules:\n  - {name: a, every: 1s, task: echo, priority: urgent}\n", `x.yaml:2: schedules[0].priority "urgent": unknown priority`},
	{"bad missed", "schedules:\n  - {name: a, every: 1s, task: echo, missed: never}\n", `x.yaml:2: schedules[0].missed "never": unknown policy`},
	{"bad backoff", "schedules:\n  - {name: a, every: 1s, task: echo, backoff: soon}\n", `x.yaml:2: schedules[0].backoff "soon":`},
	{"no attempts", "schedules:\n  - {name: a, every: 1s, task: echo, max_attempts: 0}\n", `x.yaml:2: schedules[0].max_attempts "0": out of range (1 to 1000000; 1 means no retry; leave it out for the default of 3)`},
	{"negative attempts", "schedules:\n  - {name: a, every: 1s, task: echo, max_attempts: -1}\n", `x.yaml:2: schedules[0].max_attempts "-1": out of range`},

	{"not YAML", "a: b: c\n", "x.yaml:1: mapping value is not allowed in this context"},
	{"a tab", "redis:\n\turl: x\n", "x.yaml:2: found character"},
	{"the same field twice", "lease: 5s\nlease: 6s\n", `x.yaml:2: mapping key "lease" already defined`},
	{"two documents", "lease: 5s\n---\nlease: 6s\n", "x.yaml:3: a second YAML document (keep one document in a file)"},
	{"nothing", "# nothing\n", "x.yaml: empty"},
	{"a list", "- a\n", "x.yaml:1:"},
	{"binary", "a\x00b", "x.yaml: not a text file"},
}

func TestConfig_refusesInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range badConfigs {
		_, err := checked("x.yaml", c.yaml, testEnv())
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: does not match ErrInvalid: %v", c.name, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is shown: %v", c.name, err)
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
