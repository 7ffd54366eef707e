package api

import (
	"strings"
	"testing"
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

// A name may be all dots. Its path is one that no client and no server makes shorter.
func TestLocation_isThatOfANameOfDots(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, c := range [][3]string{
		{"/v1/schedules", `{"name":"..","every":"1h","task":"echo"}`, "/v1/schedules/%2E%2E"},
		{"/v1/tasks", `{"id":".","type":"echo"}`, "/v1/tasks/%2E"},
		{"/v1/tasks", `{"id":"a/..","type":"echo"}`, "/v1/tasks/a%2F.."},
	} {
		_, header, _ := s.call("POST", c[0], c[1])
		if at := header.Get("Location"); at != c[2] {
			t.Errorf("%s: %s", c[1], at)
		}
		if status, _, text := s.call("GET", c[2], ""); status != 200 {
			t.Errorf("%s: %d %s", c[2], status, text)
		}
	}
}
