package api

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// in is how long it is until a slot, which changes between two answers.
var in = regexp.MustCompile(`"in":"[^"]*",?`)

func TestPack_compressesLongListsForThoseWhoTakeIt(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: threeTokens})
	auth := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for i := range 20 {
		s.call(http.MethodPost, "/v1/schedules", fmt.Sprintf(`{"name":"s%d","every":"1h","start":"2100-01-01T00:00:00Z","task":"job"}`, i), auth(admins)...)
	}
	for i := range 20 {
		s.call(http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"type":"job","id":"job-%d"}`, i), auth(admins)...)
	}
	s.call(http.MethodPost, "/v1/tasks", `{"type":"job","id":"long","payload":{"text":"`+strings.Repeat("a", 2000)+`"}}`, auth(admins)...)
	for _, c := range []struct {
		token, path, accept string
		packed              bool
	}{
		{viewer, "/v1/schedules", "gzip, deflate, br", true},
		{viewer, "/v1/schedules", "br;q=1.0, GZIP;q=0.5", true},
		{viewer, "/v1/schedules", "", false},
		{viewer, "/v1/schedules", "br", false},
		{viewer, "/v1/schedules", "gzip;q=0", false},
		{viewer, "/v1/schedules?limit=1", "gzip", false}, // it is short
		{viewer, "/v1/schedules?nope=" + strings.Repeat("a", 2000), "gzip", false},
		{viewer, "/v1/schedules/s1", "gzip", false},
		{operator, "/v1/schedules", "gzip", false}, // it has payloads, and URLs of heartbeats
		{viewer, "/v1/tasks/long", "gzip", false},
		{viewer, "/v1/tasks", "gzip", false}, // it has payloads, which tell of each other by their length
		{operator, "/v1/tasks?brief=true", "gzip", true},
	} {
		_, _, plain := s.call(http.MethodGet, c.path, "", auth(c.token)...)
		plain = in.ReplaceAllString(plain, "")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
		r.Header.Set("Accept-Encoding", c.accept)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		name := fmt.Sprintf("%.30s to %q", c.path, c.accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != c.packed {
			t.Errorf("%s: %d, compressed: %t", name, w.Code, got)
			continue
		}
		var body io.Reader = w.Body
		if c.packed {
			sent := w.Body.Len()
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			if body = z; sent > len(plain)/3 {
				t.Errorf("%s: %d bytes of %d", name, sent, len(plain))
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || in.ReplaceAllString(strings.TrimSpace(string(text)), "") != plain {
			t.Errorf("%s: %v, another answer: %.200s", name, err, text)
		}
		if list := c.packed || c.token == viewer && (strings.HasPrefix(c.path, "/v1/schedules?") || c.path == "/v1/schedules"); list != (w.Header().Get("Vary") != "") {
			t.Errorf("%s: Vary is %q", name, w.Header().Get("Vary"))
		}
	}
}
