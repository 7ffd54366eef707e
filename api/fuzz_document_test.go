package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// document is what a client that knows nothing else learns from /openapi.json.
type document struct {
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]*shape }

	list []*operation // in order
}

// operation is one operation of the document.
type operation struct {
	ID         string `json:"operationId"`
	Role       Role   `json:"x-onbeat-role"`
	Parameters []struct {
		Name, In string
		Explode  bool
		Schema   *shape
	}
	RequestBody *struct {
		Required bool
		Content  map[string]media
	}
	Responses map[string]struct{ Content map[string]media }

	method, path string
}

type media struct{ Schema *shape }

// body returns the shape of the body that a request has, or nil.
func (o *operation) body() *shape {
	if o.RequestBody == nil {
		return nil
	}
	return o.RequestBody.Content["application/json"].Schema
}

// shape is a JSON schema, as far as the document uses them.
type shape struct {
	Ref        string `json:"$ref"`
	Type       any
	Properties map[string]*shape
	Required   []string
	Additional any `json:"additionalProperties"`
	Items      *shape
	Enum       []any
	OneOf      []*shape
	Minimum    *float64
	MinLength  *int
	MaxLength  *int
	MaxItems   *int
	Format     string
}

// kinds returns the types of JSON that a shape may have. None means that any will do.
func (s *shape) kinds() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, one := range t {
			list = append(list, fmt.Sprint(one))
		}
		return list
	}
	return nil
}

func readDocument(t *testing.T, text []byte) *document {
	t.Helper()
	d := &document{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	for path, item := range d.Paths {
		for method, op := range item {
			op.method, op.path = strings.ToUpper(method), path
			d.list = append(d.list, op)
		}
	}
	slices.SortFunc(d.list, func(a, b *operation) int { return cmp.Compare(a.ID, b.ID) })
	return d
}

// of returns what a reference stands for.
func (d *document) of(s *shape) *shape {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// methods returns those that the document has for a path.
func (d *document) methods(path string) (list []string) {
	for method := range d.Paths[path] {
		list = append(list, strings.ToUpper(method))
	}
	return list
}

// fits checks a value against a schema. It knows nothing of the library that made the document.
func (d *document) fits(v any, s *shape, at string) error {
	if s = d.of(s); s == nil {
		return fmt.Errorf("%s: the schema is missing", at)
	}
	if len(s.OneOf) > 0 {
		return d.fitsOne(v, s, at)
	}
	kind := kindOf(v)
	if kinds := s.kinds(); len(kinds) > 0 && !slices.Contains(kinds, kind) && (kind != "integer" || !slices.Contains(kinds, "number")) {
		return fmt.Errorf("%s: %s, not %v", at, kind, kinds)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, s.Enum)
	}
	switch v := v.(type) {
	case string:
		return fitsText(v, s, at)
	case float64:
		if s.Minimum != nil && v < *s.Minimum {
			return fmt.Errorf("%s: %v is below %v", at, v, *s.Minimum)
		}
	case []any:
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			return fmt.Errorf("%s: %d items", at, len(v))
		}
		for i, item := range v {
			if s.Items == nil {
				break
			}
			if err := d.fits(item, s.Items, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return d.fitsObject(v, s, at)
	}
	return nil
}

func (d *document) fitsOne(v any, s *shape, at string) error {
	n := 0
	var last error
	for _, one := range s.OneOf {
		if err := d.fits(v, one, at); err != nil {
			last = err
			continue
		}
		n++
	}
	if n != 1 {
		return fmt.Errorf("%s: fits %d of oneOf: %w", at, n, last)
	}
	return nil
}

func fitsText(v string, s *shape, at string) error {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
		return fmt.Errorf("%s: %d characters", at, n)
	}
	if s.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (d *document) fitsObject(v map[string]any, s *shape, at string) error {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: %s is missing", at, name)
		}
	}
	for name, item := range v {
		of := s.Properties[name]
		if of == nil {
			if s.Additional == false {
				return fmt.Errorf("%s: %s is not in the schema", at, name)
			}
			of = s.rest()
		}
		if err := d.fits(item, of, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// rest returns the shape of the properties that have no name.
func (s *shape) rest() *shape {
	out := &shape{}
	text, err := json.Marshal(s.Additional)
	if err == nil && strings.HasPrefix(string(text), "{") {
		_ = json.Unmarshal(text, out)
	}
	return out
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// conforms checks a reply against the document.
func (d *document) conforms(op *operation, status int, contentType string, body []byte) error {
	said, ok := op.Responses[fmt.Sprint(status)]
	if !ok {
		return fmt.Errorf("the status %d is not in the document", status)
	}
	media, ok := said.Content[contentType]
	if !ok {
		return fmt.Errorf("the content type %q of %d is not in the document", contentType, status)
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("the body is not UTF-8")
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return d.fits(v, media.Schema, "body")
}

// wholeProblem checks that an error has all that an error of the API has.
func wholeProblem(status int, header http.Header, body []byte) error {
	var p Problem
	err := json.Unmarshal(body, &p)
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
		if f.Field == "" || f.Reason == "" {
			return fmt.Errorf("a field without a name or a reason: %+v", f)
		}
	}
	return nil
}
