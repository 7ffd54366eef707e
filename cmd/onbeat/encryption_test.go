package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/testredis"
)

// keyOf is a key of encryption as people write it.
func keyOf(c string) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(c, 32))) }

// stored returns all that Redis has in the hashes and strings of the namespace.
func (s *shell) stored() string {
	s.Helper()
	var b strings.Builder
	it := s.rdb.Scan(s.Context(), 0, "*{"+s.ns+"}*", 1000).Iterator()
	for it.Next(s.Context()) {
		switch s.rdb.Type(s.Context(), it.Val()).Val() {
		case "string":
			b.WriteString(s.rdb.Get(s.Context(), it.Val()).Val())
		case "hash":
			for name, value := range s.rdb.HGetAll(s.Context(), it.Val()).Val() {
				b.WriteString(name + value)
			}
		case "stream":
			for _, m := range s.rdb.XRange(s.Context(), it.Val(), "-", "+").Val() {
				for name, value := range m.Values {
					text, _ := value.(string)
					b.WriteString(name + text)
				}
			}
		}
	}
	return b.String()
}

func TestDoctor_saysWhichKeysAreNeeded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	base := "redis: {url: '" + s.url + "'}\nnamespace: " + s.ns + "\n"
	key := s.file("key", keyOf("k"))
	conf := s.file("onbeat.yaml", base+"encryption: {keys: [{id: k1, key_file: '"+key+"'}, {id: spare, key: '${SPARE}'}]}\n")
	env := testEnv("SPARE", keyOf("s"))
	with := func(args ...string) ran {
		return runWith(t.Context(), env, "", append([]string{"-c", conf}, args...)...)
	}
	for _, args := range [][]string{
		{"enqueue", "echo", "--in", "1h", "--payload", `"the-number"`},
		{"schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo, payload: the-number}\n")},
	} {
		if r := with(args...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if strings.Contains(s.stored(), "the-number") {
		t.Error(s.stored())
	}
	if r := with("doctor"); !strings.Contains(r.out, `key "k1": 1 tasks, 1 schedules; key "spare": nothing`) || strings.Contains(r.out, "other users") {
		t.Errorf("%+v", r)
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if r := with("doctor"); !strings.Contains(r.out, "key holds a key of encryption, and other users can read it (mode 0640)") {
		t.Errorf("%+v", r)
	}
	plain := runWith(t.Context(), testEnv(), "", "-c", s.file("plain.yaml", base), "doctor")
	if !strings.Contains(plain.out, `this config lacks "k1"; key "k1": 1 tasks, 1 schedules`) || !strings.Contains(plain.out, "encryption.keys of the instances") {
		t.Errorf("%+v", plain)
	}
	other := runWith(t.Context(), testEnv("K", keyOf("o")), "", "-c", s.file("other.yaml", base+"encryption: {keys: [{id: k1, key: '${K}'}]}\n"), "doctor")
	if !strings.Contains(other.out, `1 tasks do not open with the key "k1" of this config`) {
		t.Errorf("with another key of that ID: %+v", other)
	}
	if r := s.run("", "schedules", "apply", s.file("s.yaml", "- {name: a, every: 1h, task: echo, payload: other}\n")); r.code == 0 || !strings.Contains(r.err, `"k1"`) || !strings.Contains(r.err, "give this process the key") {
		t.Errorf("without the key: %+v", r)
	}
	if r := s.run("", "schedules", "revisions", "a"); !strings.Contains(r.out, "encrypted with key") {
		t.Errorf("without the key: %+v", r)
	}
}

// The API of an instance has the keys and the secret paths of its config. Its log, its answers to a viewer and the output of commands have
// neither a secret value, nor a key, nor a token.
func TestServe_theAPIEncryptsAndMasksAsTheConfigSays(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	const card, eye, boss = "the-number-of-the-card", "the-secret-of-the-eye", "the-secret-of-the-boss"
	put(t, filepath.Join(dir, "boss"), boss+"\n")
	conf := put(t, filepath.Join(dir, "onbeat.yaml"), "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+`
lease: 1s
log: {level: debug}
secret: {echo: [card]}
encryption: {keys: [{id: k1, key: '${KEY}'}]}
api:
  listen: 127.0.0.1:0
  tokens:
    - {name: eye, role: viewer, token: '${EYE}'}
    - {name: boss, role: admin, token_file: boss}
`)
	env := []string{"EYE=" + eye, "KEY=" + keyOf("k")}
	p := startProgram(t, dir, env, "serve", "-c", conf)
	url := urlOfAPI(t, p)
	p.logs("leads")
	all := ""
	ask := func(token, method, path, body string, want int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPost {
			r.Header.Set("Idempotency-Key", "key of "+path)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
		}
		if token != boss {
			all += string(text)
		}
		return string(text)
	}
	ask(boss, "POST", "/v1/schedules", `{"name":"s","every":"1h","task":"echo","payload":{"card":"`+card+`"}}`, 201)
	ask(boss, "DELETE", "/v1/schedules/s", "", 200)
	ask(boss, "POST", "/v1/schedules/s/restore", "", 200)
	ask(boss, "POST", "/v1/tasks", `{"id":"t","type":"echo","payload":{"card":"`+card+`"},"keep":"1h"}`, 201)
	ask(boss, "POST", "/v1/tasks", `{"id":"later","type":"echo","payload":{"card":"`+card+`"},"in":"1h"}`, 422)
	testredis.Eventually(t, patience, func() bool {
		return strings.Contains(ask(boss, "GET", "/v1/tasks/t", "", 200), `"state":"done"`)
	}, "the task is not done")
	if got := ask(boss, "GET", "/v1/tasks/t", "", 200); !strings.Contains(got, card) {
		t.Errorf("an admin: %s", got)
	}
	for _, path := range []string{"/v1/schedules/s", "/v1/schedules", "/v1/schedules/s/revisions", "/v1/tasks/t", "/v1/tasks"} {
		if got := ask(eye, "GET", path, "", 200); !strings.Contains(got, secret.Masked) {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/v1/events?after=0", "/v1/runs", "/v1/audit", "/v1/beat", "/v1/counts", "/v1/instances", "/metrics", "/docs", "/openapi.json", "/readyz"} {
		ask(eye, "GET", path, "", 200)
	}
	for _, args := range [][]string{{"check", conf}, {"check", "--json", conf}, {"doctor", "-c", conf}, {"instances", "-c", conf, "--json"}, {"events", "-c", conf, "--since", "1h"}} {
		r := runWith(t.Context(), testEnv("EYE", eye, "KEY", keyOf("k")), "", args...)
		if r.code != 0 {
			t.Errorf("%v: %+v", args, r)
		}
		all += r.out + r.err
	}
	if got := s.stored(); strings.Contains(got, card) || strings.Contains(got, eye) || strings.Contains(got, boss) || !strings.Contains(got, "boss") {
		t.Errorf("Redis has %s", got)
	}
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
	all += p.errs.String() + p.out.String()
	for _, secret := range []string{card, eye, boss, keyOf("k"), strings.Repeat("k", 32)} {
		if i := strings.Index(all, secret); i >= 0 {
			t.Errorf("%s is shown: …%s", secret, all[max(0, i-300):min(len(all), i+100)])
		}
	}
}
