package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/testredis"
)

// FuzzRequests sends parameters and bodies to each operation: as an admin to one server, and as a viewer and with an unknown token
// to another, in which nobody works. The seeds are the requests of the story, and what the document allows and forbids for each
// parameter and each field.
func FuzzRequests(f *testing.F) {
	log := &logged{}
	cfg := Config{Tokens: threeTokens, Log: zerolog.New(log).Level(zerolog.ErrorLevel)}
	forBusy, forQuiet := testredis.Mini(f), testredis.Mini(f)
	busy, quiet := newService(f, forBusy.Client, cfg), newService(f, forQuiet.Client, cfg)
	for _, x := range story {
		if strings.HasPrefix(x.path, "/v1/schedules") || strings.HasPrefix(x.path, "/v1/tasks") {
			quiet.call(x.method, x.path, x.body, as("a")...)
		}
	}
	type target struct {
		method, path string
		op           *huma.Operation
	}
	targets := map[string]target{}
	busy.operations(func(method, path string, op *huma.Operation) { targets[op.OperationID] = target{method, path, op} })
	addSeeds(f, busy)
	sent := 0
	f.Fuzz(func(t *testing.T, id, place, query, body, key, match string) {
		to := targets[id]
		path := strings.NewReplacer("{name}", place, "{id}", place).Replace(to.path)
		if query != "" {
			path += "?" + query
		}
		if _, err := url.ParseRequestURI(path); err != nil || to.op == nil || strings.ContainsAny(path, " \x7f") {
			return // net/http refuses these
		}
		headers := []string{keyHeader, key, "If-Match", match}
		for i := len(headers) - 2; i >= 0; i -= 2 {
			if headers[i+1] == "" {
				headers = slices.Delete(headers, i, i+2)
			}
		}
		if sent++; sent%1_000 == 0 {
			forBusy.FlushAll()
		}
		busy.at(t).judge(to.method, path, body, append(as("a"), headers...)...)
		before := forQuiet.Dump()
		quiet.at(t).judge(to.method, path, body, append(as("v"), headers...)...)
		if status := quiet.at(t).judge(to.method, path, body, append(as("x"), headers...)...); status != http.StatusUnauthorized {
			t.Errorf("%s %s without a known token: %d", to.method, path, status)
		}
		if after := forQuiet.Dump(); after != before {
			t.Errorf("%s %s %q: a viewer changed\n%s\nto\n%s", to.method, path, body, before, after)
		}
		if lines := log.take(); lines != "" {
			t.Errorf("%s %s %q: logged %s", to.method, path, body, lines)
		}
	})
}

// as returns the header of the holder of a token of [threeTokens].
func as(name string) []string {
	for _, token := range threeTokens() {
		if strings.HasPrefix(token.Name, name) {
			return []string{"Authorization", "Bearer " + token.Secret}
		}
	}
	return []string{"Authorization", "Bearer unknown-0123456789"}
}

// logged has the lines that a server logs. They cannot go to the test: the server does not know which of the many tests it serves.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line...)
	return len(line), nil
}

func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.text)
	l.text = nil
	return text
}

// at is the service as it is seen by one of several tests.
func (s *service) at(t *testing.T) *service { return &service{s.Server, t, s.redis, s.ns} }

// judge sends a request, judges the reply, and returns its status. The document must have all that the reply holds; see [service.call].
func (s *service) judge(method, path, body string, headers ...string) int {
	s.t.Helper()
	status, header, text := s.call(method, path, body, headers...)
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, http.NoBody)
	op, err := s.operationAt(r), error(nil)
	switch {
	case status >= 500 && status != http.StatusServiceUnavailable:
		err = fmt.Errorf("a failure")
	case status >= 400:
		err = wholeProblem(op, r.URL.Query(), status, header, text)
	case status >= 300:
		err = fmt.Errorf("sends elsewhere")
	case op != nil:
		err = s.fits(op, r.URL.Query(), body)
	}
	if err != nil {
		s.t.Errorf("%s %s %q: %d: %v\n%.600s", method, path, body, status, err, text)
	}
	return status
}

// fits checks that the document allows a request that was accepted.
func (s *service) fits(op *huma.Operation, query url.Values, body string) error {
	for name := range query {
		if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name }) {
			return fmt.Errorf("the parameter %q is not in the document", name)
		}
	}
	if body == "" || op.Method == http.MethodGet {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return err
	}
	if op.RequestBody == nil {
		if fields, ok := v.(map[string]any); !ok || len(fields) > 0 {
			return fmt.Errorf("a body where none is taken")
		}
		return nil
	}
	got := &huma.ValidateResult{}
	schema := op.RequestBody.Content["application/json"].Schema
	huma.Validate(s.huma.OpenAPI().Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, got)
	if len(got.Errors) > 0 {
		return fmt.Errorf("accepted %v", got.Errors)
	}
	return nil
}

// wholeProblem checks that an error has all that an error of the API has. A field has a pointer, unless it is a parameter.
func wholeProblem(op *huma.Operation, query url.Values, status int, header http.Header, body string) error {
	var p Problem
	err := json.Unmarshal([]byte(body), &p)
	kind, ours := strings.CutPrefix(p.Type, problemURN)
	switch {
	case err != nil:
		return err
	case header.Get("Content-Type") != problemJSON:
		return fmt.Errorf("the content type is %q", header.Get("Content-Type"))
	case !ours || kind == "" || p.Title != http.StatusText(status) || p.Status != status || p.Detail == "" || len(p.Detail) > 1<<16:
		return fmt.Errorf("not a whole problem")
	case kind == "invalid" && len(p.Errors) == 0:
		return fmt.Errorf("no field is named")
	case status == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "":
		return fmt.Errorf("no WWW-Authenticate")
	case status == http.StatusMethodNotAllowed && header.Get("Allow") == "":
		return fmt.Errorf("no Allow")
	case (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && header.Get("Retry-After") == "":
		return fmt.Errorf("no Retry-After")
	}
	for _, f := range p.Errors {
		switch {
		case f.Field == "" || f.Reason == "":
			return fmt.Errorf("a field without a name or a reason: %+v", f)
		case f.Pointer != "" || f.Field == "body" || f.Field == "query" || len(query) > 0 || op == nil:
		case !slices.ContainsFunc(op.Parameters, func(param *huma.Param) bool { return param.Name == f.Field }):
			return fmt.Errorf("a field without a pointer: %+v", f)
		}
	}
	return nil
}

// addSeeds adds requests to each operation: each parameter with a value that fits and one that does not, and each body of the story
// with each of its fields in turn as it may be, as null and as something else.
func addSeeds(f *testing.F, s *service) {
	bodies := map[string][]string{}
	for _, x := range story {
		r := httptest.NewRequestWithContext(f.Context(), x.method, x.path, http.NoBody)
		op := s.operationAt(r)
		place := placeOf(op, r)
		f.Add(op.OperationID, place, r.URL.RawQuery, x.body, "", "")
		f.Add(op.OperationID, place, r.URL.RawQuery, x.body, "a key", `"1"`)
		if x.body != "" && x.want < 300 {
			bodies[op.OperationID] = append(bodies[op.OperationID], x.body)
		}
	}
	s.operations(func(_, _ string, op *huma.Operation) {
		for _, p := range op.Parameters {
			if p.In == "query" {
				for _, value := range []any{s.sample(p.Schema, p.Name), "", "-1", "zz\x00\u202e", strings.Repeat("9", 30)} {
					f.Add(op.OperationID, "x", url.Values{p.Name: {fmt.Sprint(value)}}.Encode(), "", "", "")
				}
			}
		}
		f.Add(op.OperationID, "x", "%", "", "", "") // no query at all
		f.Add(op.OperationID, "x", "=", "", "", "") // a parameter without a name
		for _, place := range []string{"x", "", "..", "a//b", "%2E%2E", "%00", "%ff", "a%2Fb%20%E6%97%A5", "x/../y", strings.Repeat("x", 300)} {
			f.Add(op.OperationID, place, "", "{}", "", "")
		}
		if op.RequestBody == nil {
			return
		}
		schema := op.RequestBody.Content["application/json"].Schema
		base := append(bodies[op.OperationID], text(s.sample(schema, "")))[0]
		for _, body := range []string{"", "null", "[]", "7", base + base, base[:len(base)-1], "{}", `{"zz":1}`, strings.Replace(base, `"`, "\"\xff", 1)} {
			f.Add(op.OperationID, "x", "", body, "", "")
		}
		for _, shape := range append([]*huma.Schema{s.shape(schema)}, schema.OneOf...) {
			for _, name := range slices.Sorted(maps.Keys(s.shape(shape).Properties)) {
				of := s.shape(shape).Properties[name]
				for _, value := range []any{s.sample(of, name), nil, []any{map[string]any{"zz": 1}}, "nonsense"} {
					fields := map[string]any{}
					_ = json.Unmarshal([]byte(base), &fields) // it is one of the story
					fields[name] = value
					f.Add(op.OperationID, "x", "", text(fields), "", "")
				}
			}
		}
	})
}

// placeOf returns what a request has for the parameter of a path, as it is written there.
func placeOf(op *huma.Operation, r *http.Request) string {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for i, part := range strings.Split(op.Path, "/") {
		if strings.HasPrefix(part, "{") {
			return parts[i]
		}
	}
	return ""
}

// shape returns what a reference stands for.
func (s *service) shape(schema *huma.Schema) *huma.Schema {
	if schema.Ref != "" {
		return s.huma.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// sample returns a value that fits a schema.
func (s *service) sample(schema *huma.Schema, name string) any {
	schema = s.shape(schema)
	switch {
	case len(schema.Examples) > 0:
		return schema.Examples[0]
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.OneOf) > 0:
		return s.sample(schema.OneOf[0], name)
	case schema.Type == huma.TypeInteger || schema.Type == huma.TypeNumber:
		return 1
	case schema.Type == huma.TypeBoolean:
		return true
	case schema.Type == huma.TypeArray:
		return []any{s.sample(schema.Items, name)}
	case schema.Type == huma.TypeString && (schema.Format == "date-time" || name == "at" || name == "until"):
		return "2030-01-31T09:00:00Z"
	case schema.Type == huma.TypeString:
		return "1h"
	}
	fields := map[string]any{}
	for _, field := range schema.Required {
		fields[field] = s.sample(schema.Properties[field], field)
	}
	return fields
}

// text returns a value in JSON.
func text(v any) string {
	var b bytes.Buffer
	if err := marshal(&b, v); err != nil {
		panic(err) // the seeds themselves are broken
	}
	return strings.TrimSpace(b.String())
}
