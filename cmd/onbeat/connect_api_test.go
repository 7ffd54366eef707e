package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/internal/testredis"
)

const apiToken = "token-of-the-test-0123"

// before starts a server in front of an API, and returns its URL. The function answers a request and returns true, or leaves it to the API.
func before(t *testing.T, api string, answer func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// throughAPI returns the URL of an API that serves the namespace of the shell, for the holder of apiToken. It knows what is secret
// of types.
func (s *shell) throughAPI(t *testing.T, secret map[string][]string) string {
	t.Helper()
	rdb := testredis.Real(t)
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: s.ns, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return servedTo(t, d, func() []string { return nil })
}

// servedTo serves an API to the token of the tests, limited to types if there are any, and returns its URL.
func servedTo(t *testing.T, d *onbeat.Dispatcher, types func() []string) string {
	t.Helper()
	server, err := api.New(d.Admin(), api.Config{Tokens: func() []api.Token {
		return []api.Token{{Name: "ann", Role: api.Admin, Secret: apiToken, Types: types()}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		h.Close()
	})
	return h.URL
}

// The output and the exit code of a command do not depend on how it reaches the namespace.
func TestAPI_commandsDoTheSame(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	url := s.throughAPI(t, nil)
	env := func(name string) string {
		return map[string]string{"ONBEAT_API": url, "ONBEAT_TOKEN": apiToken}[name]
	}
	file := filepath.Join(t.TempDir(), "schedules.yaml")
	if err := os.WriteFile(file, []byte("schedules:\n- {name: beat, task: echo, every: 1h}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"enqueue echo --id one --in 1h", 0, "one"},
		{"enqueue echo --id one", 1, `already there: task "one"`},
		{"tasks list", 0, "one"},
		{"tasks show one", 0, "echo"},
		{"tasks show none", 1, "not found"},
		{"tasks retry one", 1, "is planned, not dead"},
		{"tasks cancel one", 0, "one"},
		{"schedules apply " + file, 0, "made"},
		{"schedules list", 0, "beat"},
		{"schedules show beat", 0, "every 1h"},
		{"schedules pause beat", 0, "paused"},
		{"schedules resume none", 1, "not found"},
		{"schedules runs beat", 0, ""},
		{"instances", 0, "no instances"},
		{"events", 0, "schedule made"},
		{"audit", 0, "beat"},
		{"schedules delete beat", 0, "deleted"},
		{"enqueue", 2, "neither a task type"},
	} {
		over := runWith(t.Context(), env, "", strings.Fields(c.args)...)
		if !strings.Contains(over.out+over.err, c.says) || over.code != c.code {
			t.Errorf("%s over HTTP: %+v", c.args, over)
		}
	}
	for what, env := range map[string]map[string]string{
		"the API needs a token (set":    {"ONBEAT_API": url},
		"leave out /v1":                 {"ONBEAT_API": url + "/v1", "ONBEAT_TOKEN": apiToken},
		"the token is not known":        {"ONBEAT_API": url, "ONBEAT_TOKEN": "some-other-token-0123"},
		"is onbeat serve running there": {"ONBEAT_API": "http://127.0.0.1:1"},
		"both set":                      {"ONBEAT_API": url, "ONBEAT_REDIS_URL": "redis://127.0.0.1:1"},
		"neither http:// nor https://":  {"ONBEAT_API": "redis://127.0.0.1:1"},
	} {
		r := runWith(context.Background(), func(name string) string { return env[name] }, "", "tasks", "list")
		if r.code == 0 || !strings.Contains(r.err, what) || strings.Contains(r.err, "some-other") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for _, args := range []string{"--api http://127.0.0.1:1 --redis redis://127.0.0.1:1 tasks list", "doctor --api " + url, "--api " + url + " -n x tasks list", "lock run --api " + url + " n -- true"} {
		if r := runWith(t.Context(), env, "", strings.Fields(args)...); r.code == 0 || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// A flag about an API is refused if the command uses no API: it would have no effect.
func TestAPI_flagsNeedAnAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, flag := range []string{"--token-file=none", "--plain-http"} {
		s.fails(exitAsked, []string{"tasks", "list", flag}, "is for an API, and none is named", "--api or ONBEAT_API")
	}
}

// serve serves the API itself, and takes its Redis from its config, whatever API other commands use.
func TestServe_isNotReachedThroughAnAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("onbeat.yaml", "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\napi: {listen: 'off'}\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan ran, 1)
	go func() {
		ended <- runWith(ctx, testEnv("ONBEAT_API", "http://127.0.0.1:1"), "", "serve", "-c", file, "--release", "v1")
	}()
	s.must("instances", "--wait", "ready=1", "--timeout", "20s")
	stop()
	if r := <-ended; r.code != 0 {
		t.Errorf("%+v", r)
	}
}
