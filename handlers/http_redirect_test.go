package handlers_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
)

func TestHTTP_followsRedirects(t *testing.T) {
	t.Parallel()
	type seen struct{ method, body, id, referer, secret string }
	var last seen
	final := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = seen{r.Method, string(body), r.Header.Get("Onbeat-Task-Id"), r.Header.Get("Referer"), r.Header.Get("X-Secret")}
	}
	other := serve(t, final)
	mux := http.NewServeMux()
	mux.HandleFunc("/final", final)
	mux.HandleFunc("/302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/final", 302) })
	mux.HandleFunc("/307", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/final", 307) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, 307) })
	mux.HandleFunc("/around", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", 302) })
	mux.HandleFunc("/see", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, 303) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", 302) })
	mux.HandleFunc("/scheme", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://127.0.0.1:1/", 302) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "file:///etc/passwd", 302) })
	mux.HandleFunc("/nowhere", status(302))
	mux.HandleFunc("/hop/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		if n > 0 {
			http.Redirect(w, r, fmt.Sprint("/hop/", n-1), 302)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	h := newHTTP(t, handlers.HTTPConfig{})
	headers := map[string]string{"X-Secret": "s", "Authorization": "a"}
	for path, want := range map[string]seen{
		"/302": {"GET", "", "id", "", "s"},
		"/307": {"POST", "b", "id", "", "s"},
		"/see": {"GET", "", "id", "", ""},
	} {
		last = seen{}
		if err := ask(t, h, "url", s.URL+path+"?token=1", "body", "b", "headers", headers); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if last != want {
			t.Errorf("%s: arrived as %+v, want %+v", path, last, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "GET"} { // the body stays with the host that the payload names
		last = seen{}
		err := ask(t, h, "url", s.URL+"/other", "method", method, "body", "b")
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(other.URL, "http://")) || handlers.IsDead(err) || last != (seen{}) {
			t.Errorf("%s: %v; arrived as %+v", method, err, last)
		}
		if err := ask(t, h, "url", s.URL+"/around", "method", method, "body", "b"); err != nil || last.body != "" {
			t.Errorf("%s, by a host that drops the body: %v; arrived as %+v", method, err, last)
		}
	}
	if err := ask(t, h, "url", s.URL+"/other"); err != nil || last.body != "" {
		t.Errorf("without a body: %v, arrived as %+v", err, last)
	}
	allowed := newHTTP(t, handlers.HTTPConfig{RedirectBody: true})
	if err := ask(t, allowed, "url", s.URL+"/other", "body", "b", "headers", headers); err != nil || last != (seen{"POST", "b", "id", "", ""}) {
		t.Errorf("where it is allowed: %v, arrived as %+v", err, last)
	}
	for path, want := range map[string]string{
		"/loop":    ": 5",
		"/hop/6":   ": 5",
		"/scheme":  "from http to https",
		"/file":    "from http to file",
		"/nowhere": "302 Found",
	} {
		if err := ask(t, h, "url", s.URL+path); err == nil || !strings.HasPrefix(err.Error(), "POST "+s.URL+path+": ") || !strings.HasSuffix(err.Error(), want) || handlers.IsDead(err) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if err := ask(t, h, "url", s.URL+"/hop/5"); err != nil {
		t.Errorf("5 redirects: %v", err)
	}
	if err := ask(t, h, "url", s.URL+"/302", "expect", []int{302}); err != nil {
		t.Errorf("an expected 302: %v", err)
	}
	if err := ask(t, h, "url", s.URL+"/302", "expect", []int{200}); err != nil {
		t.Errorf("an expected 200 behind a 302: %v", err)
	}
	none := newHTTP(t, handlers.HTTPConfig{MaxRedirects: -1})
	if se, ok := errors.AsType[*handlers.StatusError](ask(t, none, "url", s.URL+"/302")); !ok || se.Status != 302 {
		t.Errorf("with no redirects: %v", se)
	}
}

func TestHTTP_neverFallsBackFromHTTPS(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached over http") })
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ok" {
			return
		}
		http.Redirect(w, r, plain.URL, 307)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	h := newHTTP(t, handlers.HTTPConfig{TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	if err := ask(t, h, "url", secure.URL+"/ok"); err != nil {
		t.Error(err)
	}
	if err := ask(t, h, "url", secure.URL); err == nil || !strings.HasSuffix(err.Error(), "from https to http") {
		t.Error(err)
	}
	if err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", secure.URL+"/ok"); err == nil {
		t.Error("an unknown certificate was taken")
	} else if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Error(err)
	}
}
