package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotifyTest_sendsToEachTarget(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/bad") {
			http.Error(w, "no hook at "+r.URL.Path, http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "onbeat.yaml")
	text := "namespace: shop\nnotify:\n  - {name: good, url: '" + server.URL + "/good'}\n  - {name: bad, url: '" + server.URL + "/bad/sesame'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ran {
		return runWith(t.Context(), testEnv(), "", append([]string{"notify", "test"}, args...)...)
	}
	r := run("-c", file)
	if r.code != exitFailed || !strings.Contains(r.out, "sent") || !strings.Contains(r.out, "404") || strings.Contains(r.out+r.err, "sesame") {
		t.Errorf("%+v", r)
	}
	if r := run("-c", file, "good", "--json"); r.code != 0 || !strings.Contains(r.out, `{"target":"good","kind":"json","sent":true}`) {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{}, {"-c", file, "none"}} {
		if r := run(args...); r.code != exitAsked {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
