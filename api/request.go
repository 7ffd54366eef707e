package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/onbeat/onbeat/internal/strictjson"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

func statusText(code int) string { return strconv.Itoa(code) }

// admit refuses a request whose sender may not do what it asks, or that has parameters which the operation does not.
func (s *Server) admit(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	op := ctx.Operation()
	need, _ := op.Metadata["role"].(Role)
	if who := identityOf(ctx.Context()); !who.Role.May(need) {
		problem(w, http.StatusForbidden, &refusal{
			http.StatusForbidden, "forbidden", fmt.Sprintf("%s may not do this", whom(&who)), "it needs the role " + string(need),
		})
		return
	}
	if err := checkQuery(op, r.URL.RawQuery); err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	next(ctx)
}

func whom(who *Identity) string {
	if who.Role == "" {
		return "a request without a role"
	}
	return "the " + string(who.Role) + " " + strconv.Quote(who.Name)
}

// checkQuery refuses unknown parameters, which would be a filter that filters nothing, and those that are given twice.
func checkQuery(op *huma.Operation, raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return &task.FieldError{Field: "query", Reason: "cannot be read", Hint: "escape % as %25, ; as %3B and & as %26"}
	}
	var known []string
	var refused []error
	for _, p := range op.Parameters {
		if p.In != "query" {
			continue
		}
		known = append(known, p.Name)
		if len(values[p.Name]) > 1 && (p.Explode == nil || !*p.Explode) {
			refused = append(refused, &task.FieldError{Field: p.Name, Reason: "given twice"})
		}
	}
	for _, name := range slices.Sorted(keys(values)) {
		if len(refused) == maxRefused {
			break
		}
		switch {
		case name == "":
			refused = append(refused, &task.FieldError{Field: "query", Reason: "has a parameter without a name"})
		case !slices.Contains(known, name):
			refused = append(refused, &task.FieldError{Field: wording.Cut(name, 60), Reason: "unknown parameter", Hint: wording.Suggest(name, known)})
		}
	}
	return wording.Join(refused...)
}

func keys(values url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range values {
			if !yield(name) {
				return
			}
		}
	}
}

type bodyKey struct{}

// checkBody refuses a body that is not said to be JSON, before the operation does anything.
func checkBody(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if len(bodyOf(ctx.Context())) > 0 {
		if err := checkMedia(r.Header.Get("Content-Type")); err != nil {
			problem(w, http.StatusBadRequest, err)
			return
		}
	}
	next(ctx)
}

// checkMedia refuses a body that is not said to be JSON. A page elsewhere can have a browser send other types unasked.
func checkMedia(header string) error {
	kind, _, err := mime.ParseMediaType(header)
	if err == nil && kind == "application/json" {
		return nil
	}
	return &refusal{
		http.StatusUnsupportedMediaType, "media-type", "the Content-Type is " + strconv.Quote(wording.Cut(header, 60)) + ", not application/json",
		"with curl, use --json in place of --data",
	}
}

// bodyOf returns the body of a request, which guard has read, and bounded.
func bodyOf(ctx context.Context) []byte {
	body, _ := ctx.Value(bodyKey{}).([]byte)
	return body
}

// read reads the body of a request into v, strictly. An empty body is an empty object if that is enough for the operation.
func read(ctx context.Context, v any, noun string) error {
	return located(strictly(bodyOf(ctx), v, noun), "")
}

// readNothing refuses the body of an operation that takes none.
func readNothing(ctx context.Context) error {
	if len(bodyOf(ctx)) == 0 {
		return nil
	}
	return read(ctx, &struct{}{}, "request")
}

func strictly(data []byte, v any, noun string) error {
	if len(data) == 0 {
		return &task.FieldError{Field: "body", Reason: "empty", Hint: "send a JSON object"}
	}
	err := strictjson.Decode(data, v, noun)
	var bad *strictjson.Malformed
	if errors.As(err, &bad) {
		return &task.FieldError{Field: "body", Reason: bad.Text, Hint: "one JSON object"}
	}
	if err != nil {
		return err
	}
	return strictjson.Exact(data, reflect.TypeOf(v).Elem())
}

// hasField reports whether a body that has been read has a field.
func hasField(body []byte, name string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(body, &fields) == nil && fields[name] != nil
}

// located gives the fields that an error refuses their place in the body: under prefix, such as "tasks[3]".
func located(err error, prefix string) error {
	list := fieldsOf(err)
	if len(list) == 0 {
		return err
	}
	p, _ := problemOf(err)
	texts := make([]error, len(list))
	for i := range list {
		f := &list[i]
		switch {
		case prefix != "" && f.Field == "body":
			f.Field = prefix
		case prefix != "":
			f.Field = prefix + "." + f.Field
		}
		if f.Field != "body" {
			f.Pointer = pointer(f.Field)
		}
		texts[i] = &task.FieldError{Field: f.Field, Value: f.Value, Reason: f.Reason, Hint: f.Hint}
	}
	p.Errors, p.Detail = list, wording.Join(texts...).Error()
	return p
}
