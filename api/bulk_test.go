package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/admin"
)

const cancelJobs = `{"action":"cancel","filter":{"type":"job"},"about":5}`

// bulkAction sends a request that is answered with a bulk action.
func (s *service) bulkAction(path, body string, headers ...string) (b admin.BulkTask) {
	s.t.Helper()
	status, head, text := s.call(http.MethodPost, path, body, headers...)
	if err := json.Unmarshal([]byte(text), &b); err != nil || status > 299 {
		s.t.Fatalf("POST %s: %d %s", path, status, text)
	}
	if status == http.StatusAccepted && head.Get("Location") != "/v1/bulk/"+b.ID {
		s.t.Errorf("it is at %s: %+v", head.Get("Location"), b)
	}
	return b
}

func TestBulk_needsTheRoleOfWhatItDoes(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Tokens: threeTokens})
	const path = "/v1/bulk"
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for _, c := range []struct {
		token, body string
		want        int
	}{
		{viewer, `{"action":"retry","filter":{}}`, 403},
		{operator, `{"action":"retry","filter":{}}`, 403}, // a token of some queues
		{operator, `{"action":"retry_as_it_was","filter":{}}`, 202},
		{operator, `{"action":"delete","filter":{}}`, 403},
		{admins, `{"action":"delete"}`, 400},
		{admins, `{"action":"delete","filter":{"state":"planned"}}`, 400},
		{admins, `{"action":"retry","filter":{"host":"x"}}`, 400},
		{admins, `{"action":"retry","filter":{"type":"onbeat.bulk"}}`, 400},
		{admins, `{"action":"retry","filter":{},"about":-1}`, 400},
		{admins, `{"action":"retry","filter":{"error":"` + strings.Repeat("x", 5000) + `"}}`, 400},
	} {
		if status, _, text := s.call(http.MethodPost, path, c.body, as(c.token)...); status != c.want {
			t.Errorf("%s %.80s: %d, want %d: %s", c.token, c.body, status, c.want, text)
		}
	}
	b := s.bulkAction(path, `{"action":"delete","filter":{}}`, as(admins)...)
	one := path + "/" + b.ID
	if p := s.problem(http.MethodPost, one+"/stop", "", as(viewer)...); p.Status != 403 {
		t.Errorf("a viewer stops it: %+v", p)
	}
	if b = s.bulkAction(one+"/stop", "", as(operator)...); b.State != admin.BulkStopped || b.StoppedBy != "o" || b.By != "a" {
		t.Errorf("%+v", b)
	}
	if p := s.problem(http.MethodPost, one+"/resume", "", as(operator)...); p.Status != 403 { // a sender that may not begin it
		t.Errorf("%+v", p)
	}
	if b = s.bulkAction(one+"/resume", "", as(admins)...); b.State != admin.BulkWaiting {
		t.Errorf("%+v", b)
	}
	retried := path + "/" + s.bulkAction(path, `{"action":"retry","filter":{}}`, as(admins)...).ID
	s.bulkAction(retried+"/stop", "", as(operator)...)
	if p := s.problem(http.MethodPost, retried+"/resume", "", as(operator)...); p.Status != 403 { // a token of some queues
		t.Errorf("%+v", p)
	}
	if p := s.problem(http.MethodGet, path+"/none", "", as(viewer)...); p.Status != 404 {
		t.Errorf("%+v", p)
	}
}

func TestBulk_beginsOnceForAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	first := s.bulkAction("/v1/bulk", cancelJobs, keyHeader, "one")
	again := s.bulkAction("/v1/bulk", cancelJobs, keyHeader, "one")
	s.forgets()
	lost := s.bulkAction("/v1/bulk", cancelJobs, keyHeader, "one")
	list, err := s.admin.Bulks.List(t.Context())
	if first.ID != again.ID || first.ID != lost.ID || err != nil || len(list.Items) != 1 {
		t.Errorf("%s, %s, %s, %+v, %v", first.ID, again.ID, lost.ID, list, err)
	}
	for i := range 15 {
		s.bulkAction("/v1/bulk", cancelJobs, keyHeader, strconv.Itoa(i))
	}
	if p := s.problem(http.MethodPost, "/v1/bulk", cancelJobs); p.Status != 409 || p.Type != problemURN+"bulk" {
		t.Errorf("one too many: %+v", p)
	}
}
