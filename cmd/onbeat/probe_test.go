package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A probe tells a process that is alive from an instance that is ready, whatever tokens the API wants.
func TestProbe_asksTheInstanceItself(t *testing.T) {
	t.Parallel()
	s, dir := newShell(t), t.TempDir()
	conf := func(redis string) string {
		return put(t, filepath.Join(t.TempDir(), "onbeat.yaml"), "redis: {url: '"+redis+"'}\nnamespace: "+s.ns+
			"\napi: {listen: 127.0.0.1:0, tokens: [{name: ops, role: admin, token: '${TOKEN}'}]}\n")
	}
	start := func(redis string) string {
		return urlOfAPI(t, startProgram(t, dir, []string{"TOKEN=0123456789abcdef"}, "serve", "-c", conf(redis)))
	}
	ask := func(args ...string) ran {
		return runWith(t.Context(), testEnv(), "", append([]string{"probe"}, args...)...)
	}

	well := start(s.url)
	if r := ask("--api", well); r.code != exitFine || r.out != "ok\n" {
		t.Errorf("alive: %+v", r)
	}
	testredis.Eventually(t, patience, func() bool { return ask("--ready", "--api", well).code == exitFine }, "it is ready")

	lost := start("redis://127.0.0.1:1/0")
	if r := ask("--api", lost); r.code != exitFine {
		t.Errorf("without Redis it is alive: %+v", r)
	}
	s.failed(ask("--ready", "--api", lost), exitFailed, "without Redis", "not registered")
	s.failed(ask("--api", "http://127.0.0.1:1"), exitFailed, "without an instance", "refused", "--api")
	s.failed(ask("--api", "http://"), exitAsked, "without a host", "invalid")
}

// The certificate of an API on this machine may be of a CA that the machine does not know. The Redis of the instance is nothing to a probe.
func TestProbe_asksItsOwnMachineWhateverItsCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	defer srv.Close()
	if r := runWith(t.Context(), testEnv("ONBEAT_API", srv.URL, "ONBEAT_REDIS_URL", "redis://127.0.0.1:1"), "", "probe", "--ready"); r.code != exitFine || !strings.Contains(r.out, "/readyz") {
		t.Errorf("%+v", r)
	}
}
