package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/admin"
)

func TestDocument_saysWhatEachOperationNeedsAndAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	ids := map[string]string{}
	s.operations(func(method, path string, op *huma.Operation) {
		where := method + " " + path
		role := Role(op.Extensions["x-onbeat-role"].(string))
		if before, twice := ids[op.OperationID]; twice || op.OperationID == "" {
			t.Errorf("%s: the operation ID %q, also of %s", where, op.OperationID, before)
		}
		ids[op.OperationID] = where
		switch {
		case !Admin.May(role):
			t.Errorf("%s: no role", where)
		case (method == http.MethodGet) != (role == Viewer):
			t.Errorf("%s needs the role %s", where, role)
		case op.Summary == "":
			t.Errorf("%s: no summary", where)
		}
		for _, code := range []string{"400", "401", "403", "429", "503"} {
			if got := op.Responses[code]; got == nil || got.Content[problemJSON] == nil {
				t.Errorf("%s: no %s", where, code)
			}
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
			if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "path" && p.Name == m[1] && p.Required }) {
				t.Errorf("%s: the parameter %s is not in the document", where, m[1])
			}
		}
	})
	if len(ids) < 30 {
		t.Errorf("only %d operations", len(ids))
	}
}

func TestDocument_refersToNothingThatIsMissing(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	_, _, text := s.call("GET", "/openapi.json", "")
	var doc struct {
		OpenAPI    string
		Info       struct{ Title, Version string }
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version == "" {
		t.Fatal(err, doc.OpenAPI, doc.Info)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllStringSubmatch(text, -1) {
		name, ok := strings.CutPrefix(m[1], "#/components/schemas/")
		if used[name] = true; !ok || doc.Components.Schemas[name] == nil {
			t.Errorf("%s is missing", m[1])
		}
	}
	for name := range doc.Components.Schemas {
		if !used[name] {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
}

// The states that the document lists for a filter are those that a filter takes.
func TestDocument_hasTheStatesOfTasks(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	s.operations(func(method, path string, op *huma.Operation) {
		if method != http.MethodGet || path != "/v1/tasks" {
			return
		}
		for _, p := range op.Parameters {
			if p.Name != "state" {
				continue
			}
			var states []admin.TaskState
			for _, v := range p.Schema.Enum {
				x, err := admin.ParseTaskState(fmt.Sprint(v))
				if states = append(states, x); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(states, []admin.TaskState{admin.TaskRunning, admin.TaskWaiting, admin.TaskRetrying, admin.TaskPlanned, admin.TaskDead, admin.TaskDone}) {
				t.Errorf("%v", states)
			}
			return
		}
		t.Error("no states")
	})
}

// Each operation refuses a role below the one that it needs, and does so before it reads the request.
func TestRoles_boundWhatATokenMayDo(t *testing.T) {
	t.Parallel()
	tokens := []Token{
		{Name: "v", Role: Viewer, Secret: "v-0123456789abcdef"}, {Name: "o", Role: Operator, Secret: "o-0123456789abcdef", Queues: []string{"q"}, Types: []string{"echo"}},
		{Name: "a", Role: Admin, Secret: "a-0123456789abcdef"},
	}
	s := serve(t, Config{Tokens: func() []Token { return tokens }})
	s.operations(func(method, path string, op *huma.Operation) {
		need := Role(op.Extensions["x-onbeat-role"].(string))
		path = strings.NewReplacer("{name}", "x", "{id}", "x").Replace(path)
		for _, token := range tokens {
			status, _, text := s.call(method, path, "", "Authorization", "Bearer "+token.Secret)
			if (status == http.StatusForbidden) == token.Role.May(need) {
				t.Errorf("%s %s as %s: %d %s", method, path, token.Role, status, text)
			}
		}
	})
	operator := []string{"Authorization", "Bearer o-0123456789abcdef"}
	for body, want := range map[string]int{
		`{"type":"echo","queue":"q"}`: 201, `{"type":"echo"}`: 403, `{"type":"other","queue":"q"}`: 403, `{"tasks":[{"type":"echo","queue":"q"},{"type":"echo"}]}`: 403,
	} {
		if status, _, text := s.call("POST", "/v1/tasks", body, operator...); status != want {
			t.Errorf("%s: %d, want %d: %s", body, status, want, text)
		}
	}
	if status, _, text := s.call("POST", "/v1/schedules", hourly, "Authorization", "Bearer a-0123456789abcdef"); status != 201 {
		t.Fatal(text)
	}
	for path, body := range map[string]string{"/trigger": "", "/backfill": `{"from":"3h"}`} {
		if status, _, text := s.call("POST", "/v1/schedules/a%2Fb"+path, body, operator...); status != 403 {
			t.Errorf("%s of a schedule whose queue the token may not use: %d %s", path, status, text)
		}
	}
	if status, _, text := s.call("POST", "/v1/tasks/bulk", `{"action":"delete","filter":{}}`, operator...); status != 403 {
		t.Errorf("%d %s", status, text)
	}
}
