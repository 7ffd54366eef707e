package api

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/task"
)

// Each of these once did something, or said nothing of use.
func TestRequests_thatAreNonsenseDoNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	s.call("PUT", "/v1/schedules/b", `{"every":"1h","task":"echo"}`)
	for _, c := range []struct {
		exchange
		field  string
		header []string
	}{
		{exchange: exchange{"POST", "/v1/tasks/bulk", `{"action":"cancel"}`, 400}, field: "filter"},
		{exchange: exchange{"POST", "/v1/schedules/b/pause", `null`, 400}, field: "body"},
		{exchange: exchange{"POST", "/v1/tasks", `{"tasks":[null,7]}`, 400}, field: "tasks[0]"},
		{exchange: exchange{"POST", "/v1/instances/pause", `{"":1,"for":"1m"}`, 400}, field: ""},
		{exchange: exchange{"PUT", "/v1/schedules/a/../b", `{"every":"2h","task":"echo"}`, 404}},
		{exchange: exchange{"DELETE", "/v1//schedules/b", "", 404}},
		{exchange: exchange{"PUT", "/v1/schedules/b", `{"every":"2h","task":"echo"}`, 400}, field: "If-Match", header: []string{"If-Match", "'1'"}},
		{exchange: exchange{"PUT", "/v1/schedules/b", `{"every":"2h","task":"echo"}`, 400}, field: "If-Match", header: []string{"If-Match", `"+1"`}},
	} {
		p := s.problem(c.method, c.path, c.body, c.header...)
		if p.Status != c.want || c.field != "" && (len(p.Errors) == 0 || p.Errors[0].Field != c.field) {
			t.Errorf("%s %s %s: %+v", c.method, c.path, c.body, p)
		}
	}
	if _, _, text := s.call("GET", "/v1/schedules/b", ""); !strings.Contains(text, `"every":"1h"`) || !strings.Contains(text, `"paused":false`) {
		t.Error(text)
	}
}

// Every name that may be made has a path by which it is asked for.
func TestNames_allHaveAPath(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	var names []string
	for _, a := range "aZ7-_.:/+%?#&;=@ \\\"<~*\u00e9" {
		names = append(names, string(a))
		for _, b := range "aZ7-_.:/+%?#&;=@ \\\"<~*\u00e9" {
			names = append(names, string(a)+string(b))
		}
	}
	refused := 0 // by one of the two
	for _, name := range names {
		for at, err := range map[string]error{"/v1/tasks": task.CheckID("id", name), "/v1/schedules": task.CheckName("name", name)} {
			if err != nil {
				refused++
				continue
			}
			at = pathOf(at, name)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
			_, pattern := s.mux.Handler(r)
			s.mux.ServeHTTP(&probe{header: http.Header{}}, r) // sets the value
			if got := r.PathValue(strings.Trim(path.Base(pattern), "{}")); got != name || !isClean(r.URL.EscapedPath()) {
				t.Errorf("%q: %s leads to %q with %q", name, at, pattern, got)
			}
		}
	}
	if refused >= len(names) {
		t.Errorf("%d of %d names are refused", refused, len(names))
	}
}

// A name that no client can address is not made: one of dots alone, or a slash. Other names with dots and slashes have their path.
func TestNames_withoutAPathAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, name := range []string{".", "..", "/"} {
		for _, c := range [][2]string{
			{"/v1/schedules", `{"name":"` + name + `","every":"1h","task":"echo"}`}, {"/v1/tasks", `{"id":"` + name + `","type":"echo"}`},
			{"/v1/tasks", `{"tasks":[{"id":"` + name + `","type":"echo"}]}`},
		} {
			if p := s.problem("POST", c[0], c[1]); p.Status != 400 || len(p.Errors) != 1 {
				t.Errorf("%s: %+v", c[1], p)
			}
		}
		if p := s.problem("PUT", "/v1/schedules/"+strings.ReplaceAll(name, ".", "%2E"), `{"every":"1h","task":"echo"}`); name != "/" && p.Status != 400 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	_, header, _ := s.call("POST", "/v1/tasks", `{"id":"a/..","type":"echo"}`)
	if at := header.Get("Location"); at != "/v1/tasks/a%2F.." {
		t.Errorf("%s", at)
	} else if status, _, text := s.call("GET", at, ""); status != 200 {
		t.Errorf("%s: %d %s", at, status, text)
	}
}
