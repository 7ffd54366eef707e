package handlers_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// A value with all that JSON escapes.
const apiToken = `s3cr3t "to\ken" <&>`

func TestHTTP_resolvesReferencesAtTheRun(t *testing.T) {
	t.Setenv("API_TOKEN", apiToken)
	t.Setenv("REGION", "eu")
	var header, body string
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		header, body = r.Header.Get("Authorization"), string(b)
	})
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN", "REGION"}})
	for _, c := range []struct {
		header     string
		body       any
		wantHeader string
		wantBody   string
	}{
		{"Bearer ${API_TOKEN}", nil, "Bearer " + apiToken, ""},
		{"${REGION}:${API_TOKEN}:${REGION}", nil, "eu:" + apiToken + ":eu", ""},
		{"a", "in text: ${API_TOKEN}", "a", "in text: " + apiToken},
		{"a", map[string]any{"t": "${API_TOKEN}", "l": []string{"${REGION}"}}, "a", `{"l":["eu"],"t":"s3cr3t \"to\\ken\" <&>"}`},
		{"$${API_TOKEN} $$${REGION}", "$${NOT_ALLOWED}", "${API_TOKEN} $${REGION}", "${NOT_ALLOWED}"},
		{"${user.name} ${} $API_TOKEN ${API-TOKEN} ${1} ${A", "${", "${user.name} ${} $API_TOKEN ${API-TOKEN} ${1} ${A", "${"},
	} {
		if err := ask(t, h, "url", s.URL, "headers", map[string]string{"Authorization": c.header}, "body", c.body); err != nil {
			t.Errorf("%s: %v", c.header, err)
		}
		if header != c.wantHeader || body != c.wantBody {
			t.Errorf("%s, %v: sent %q and %q", c.header, c.body, header, body)
		}
	}
	t.Setenv("REGION", "us")
	if err := ask(t, h, "url", s.URL, "headers", map[string]string{"Authorization": "${REGION}:${API_TOKEN}:${REGION}"}); err != nil || !strings.HasPrefix(header, "us:") {
		t.Errorf("after a change: %q, %v", header, err)
	}
	// A value with a reference in it is a value.
	t.Setenv("REGION", "${API_TOKEN}")
	if err := ask(t, h, "url", s.URL, "body", "${REGION}"); err != nil || body != "${API_TOKEN}" {
		t.Errorf("resolved twice: %q, %v", body, err)
	}
}

func TestHTTP_refusesAVariableThatItMayNotPass(t *testing.T) {
	t.Setenv("API_TOKEN", "s3cr3t")
	t.Setenv("EMPTY", "")
	t.Setenv("LINES", "s3cr3t\r\nX-Evil: 1")
	asked := false
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	for _, c := range []struct{ header, body, want string }{
		{"${HOME}", "", "${HOME} is not in http.pass_env of this instance (add it there, or write $${HOME} for the text)"},
		{"", "${API_TOKEN}${ONBEAT_REDIS_URL}", "${ONBEAT_REDIS_URL} is not in http.pass_env of this instance"},
		{"${EMPTY}", "", "${EMPTY} is not set in the environment of this instance"},
		{"${UNSET_OF_ONBEAT}", "", "${UNSET_OF_ONBEAT} is not set in the environment of this instance"},
		{"${LINES}", "", "${LINES} has a control character"},
	} {
		h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN", "EMPTY", "UNSET_OF_ONBEAT", "LINES"}})
		err := ask(t, h, "url", s.URL+"/p?q=1", "headers", map[string]string{"X-A": c.header}, "body", c.body)
		if !errors.Is(err, handlers.ErrEnv) || handlers.IsDead(err) || !strings.Contains(fmt.Sprint(err), "POST "+s.URL+"/p: environment variable cannot be used: "+c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if said := fmt.Sprint(err); strings.Contains(said, "s3cr3t") || strings.ContainsAny(said, "\r\n") {
			t.Errorf("%q", said)
		}
	}
	if asked {
		t.Error("a request was sent all the same")
	}
	err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL, "headers", map[string]string{"X-A": "${API_TOKEN}"})
	if !errors.Is(err, handlers.ErrEnv) {
		t.Errorf("by default: %v", err)
	}
	if err := handlers.HTTP(handlers.HTTPConfig{}).(handlers.PayloadChecker).CheckPayload(
		payload("url", s.URL, "headers", map[string]string{"Host": "${API_TOKEN}"})); err == nil || !strings.Contains(err.Error(), "not a host") {
		t.Errorf("in Host: %v", err)
	}
}

// A receiver may send back the value of a variable in any way: the error of the run does not show it.
func TestHTTP_showsNoValueInErrors(t *testing.T) {
	t.Setenv("API_TOKEN", apiToken)
	mux := http.NewServeMux()
	repeat := func(w http.ResponseWriter, r *http.Request, before string) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, before+r.Header.Get("X-A")+" follows")
	}
	mux.HandleFunc("/text", func(w http.ResponseWriter, r *http.Request) { repeat(w, r, "you sent: ") })
	mux.HandleFunc("/edge/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		repeat(w, r, strings.Repeat("x", n))
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/escaped", func(w http.ResponseWriter, r *http.Request) { // as JSON may be written, too
		w.WriteHeader(http.StatusForbidden)
		token := r.Header.Get("X-A")
		_, _ = fmt.Fprintf(w, `{"t":"%s\u%04x"}`, token[:len(token)-1], token[len(token)-1])
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, r.Header.Get("X-A")[:10])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/host", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://s3cr3t.example:1/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/scheme", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "s3cr3t://h/")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/changed", func(w http.ResponseWriter, r *http.Request) {
		repeat(w, r, strings.ToUpper(r.Header.Get("X-A"))+" or "+r.Header.Get("X-A")[:8])
	})
	mux.HandleFunc("/garbage", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, r.Header.Get("X-A")+"\r\n\r\n")
		_ = conn.Close()
	})
	s := serve(t, mux.ServeHTTP)
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN"}})
	fail := func(path string) string {
		t.Helper()
		err := ask(t, h, "url", s.URL+path, "headers", map[string]string{"X-A": "${API_TOKEN}"}, "body", map[string]string{"t": "${API_TOKEN}"})
		if err == nil {
			t.Fatalf("%s: no error", path)
		}
		return handlers.Report(err)
	}
	for path, want := range map[string]string{
		"/text": "you sent: ${API_TOKEN} follows", "/json": `{"t":"${API_TOKEN}"}`, "/broken": "${API_TOKEN}", "/escaped": `{"t":"${API_TOKEN}"}`, "/garbage": `malformed HTTP status code "…"`,
	} {
		if said := fail(path); !strings.Contains(said, want) || strings.Contains(said, "s3cr3t") || strings.Contains(said, `\ken`) {
			t.Errorf("%s: %s", path, said)
		}
	}
	for n := 1000; n <= 1030; n++ { // around the place where the answer is cut
		if said := fail(fmt.Sprint("/edge/", n)); strings.Contains(said, "s3") {
			t.Errorf("%d: %s", n, said[len(said)-60:])
		}
	}
	t.Setenv("API_TOKEN", "S3Cr3t-of-it")
	if said := fail("/changed"); !strings.Contains(said, "${API_TOKEN} or ${API_TOKEN}${API_TOKEN} follows") {
		t.Error(said)
	}
	t.Setenv("API_TOKEN", "S3Cr3t")
	if said := fail("/scheme"); !strings.Contains(said, "refused a redirect to another scheme: from http to another") {
		t.Error(said)
	}
	t.Setenv("API_TOKEN", "s3cr3t")
	if said := fail("/host"); !strings.Contains(said, "refused a redirect that takes the body to another host: ${API_TOKEN}.example:1") {
		t.Error(said)
	}
}

// A redirect takes no value of a variable to another host.
func TestHTTP_takesNoValueToAnotherHost(t *testing.T) {
	t.Setenv("API_TOKEN", "s3cr3t")
	var leaked []string
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if all := fmt.Sprint(r.Header, r.URL, string(b)); strings.Contains(all, "s3cr3t") {
			leaked = append(leaked, all)
		}
	})
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN"}})
	for _, code := range []int{302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) })
		err := ask(t, h, "url", s.URL, "headers", map[string]string{"X-A": "${API_TOKEN}"}, "body", "${API_TOKEN}")
		if (err == nil) != (code < 307) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("%q", leaked)
	}
}

func TestHTTPEnv_namesEachVariableOnce(t *testing.T) {
	t.Parallel()
	got := handlers.HTTPEnv(payload("url", "http://h/${URL}", "headers", map[string]string{"A": "${B}", "C": "${A}$${D}"}, "body", []string{"${B}", "${E}"}))
	if fmt.Sprint(got) != "[A B E]" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"", "{", `{"body":"${A}"}`} {
		if got := handlers.HTTPEnv([]byte(bad)); got != nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

// A payload that many runs share is not changed by one of them.
func TestHTTP_resolvesForManyRunsAtOnce(t *testing.T) {
	t.Setenv("API_TOKEN", "s3cr3t")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-A") != "s3cr3t" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN"}})
	p := payload("url", s.URL, "headers", map[string]string{"X-A": "${API_TOKEN}"})
	done := make(chan error)
	for range 20 {
		go func() { done <- h.Handle(t.Context(), &task.Task{ID: "id", Type: "http", Payload: p}) }()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
