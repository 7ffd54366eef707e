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
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "onbeat.yaml")
	text := "namespace: shop\nnotify:\n  - {name: good, url: '" + server.URL + "/good'}\n  - {name: bad, url: '" + server.URL + "/bad/sesame'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run("", "notify", "test", "-c", file)
	if r.code != exitFailed || !strings.Contains(r.out, "sent") || !strings.Contains(r.out, "404") || strings.Contains(r.out+r.err, "sesame") {
		t.Errorf("%+v", r)
	}
	if out := s.must("notify", "test", "-c", file, "good", "--json"); !strings.Contains(out, `{"target":"good","kind":"json","sent":true}`) {
		t.Error(out)
	}
	for _, args := range [][]string{{"notify", "test"}, {"notify", "test", "-c", file, "none"}} {
		if r := s.run("", args...); r.code != exitAsked {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
