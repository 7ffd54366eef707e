package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Problem is an error in JSON, by RFC 9457.
type Problem struct {
	Type   string `json:"type" doc:"What kind of problem it is, such as urn:onbeat:problem:not-found."`
	Title  string `json:"title" doc:"The status in words."`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"The sentence for a person, as the onbeat command prints it."`
	// Errors are the fields that were refused.
	Errors []FieldProblem `json:"errors,omitempty" doc:"The fields that are refused."`
	// ID is that of the task that is in the way, State the state that it is in, and Want the one that the call needs.
	ID    string          `json:"id,omitempty" doc:"The task that is in the way."`
	State admin.TaskState `json:"state,omitempty" doc:"The state that the task is in."`
	Want  admin.TaskState `json:"want,omitempty" doc:"The state that the call needs."`
	// Taken says what the other task holds: "id" or "unique".
	Taken string `json:"taken,omitempty" enum:"id,unique" doc:"What the other task holds."`

	wait int // seconds after which to try again; 0: no word about it
}

// FieldProblem is one refused field.
type FieldProblem struct {
	Field   string `json:"field" doc:"The field as the onbeat command names it, such as tasks[3].priority."`
	Value   string `json:"value,omitempty" doc:"What was given."`
	Reason  string `json:"reason"`
	Hint    string `json:"hint,omitempty" doc:"What to write instead."`
	Pointer string `json:"pointer,omitempty" doc:"The place in the body, as a JSON pointer in a fragment: #/tasks/3/priority."`
}

// Error is the sentence for a person.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is read by huma.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is read by huma.
func (p *Problem) ContentType(string) string { return problemJSON }

// GetHeaders is read by huma.
func (p *Problem) GetHeaders() http.Header {
	if p.wait == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(p.wait)}}
}

const (
	problemJSON = "application/problem+json"
	problemURN  = "urn:onbeat:problem:"
)

// refusal is an error of the API itself, which says its status.
type refusal struct {
	status int
	kind   string
	text   string
	hint   string
}

func (e *refusal) Error() string { return wording.WithHint(e.text, e.hint) }

// answers says which status an error has, and the kind of problem that it is. The first match counts.
var answers = []struct {
	match  error
	status int
	kind   string
	wait   int
}{
	{archive.ErrUnavailable, http.StatusServiceUnavailable, "archive", 5}, // first: the error of the database may match another
	{archive.ErrDenied, http.StatusServiceUnavailable, "archive", 30},
	{archive.ErrTables, http.StatusServiceUnavailable, "archive", 30},
	{archive.ErrFull, http.StatusServiceUnavailable, "archive", 30},
	{task.ErrUnreplicated, http.StatusServiceUnavailable, "unreplicated", 1},
	{store.ErrSuspect, http.StatusServiceUnavailable, "suspect", 1},
	{task.ErrUnreachable, http.StatusServiceUnavailable, "unreachable", 1},
	{task.ErrBusy, http.StatusServiceUnavailable, "busy", 1},
	{task.ErrFull, http.StatusServiceUnavailable, "full", 30},
	{task.ErrDenied, http.StatusServiceUnavailable, "denied", 30},
	{store.ErrWrongType, http.StatusServiceUnavailable, "wrong-type", 30},
	{context.Canceled, http.StatusServiceUnavailable, "interrupted", 1},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "unreachable", 1},
	{task.ErrInvalid, http.StatusBadRequest, "invalid", 0},
	{task.ErrNotFound, http.StatusNotFound, "not-found", 0},
	{admin.ErrBulks, http.StatusConflict, "bulk", 0},
	{task.ErrDuplicate, http.StatusConflict, "duplicate", 0},
	{admin.ErrRevision, http.StatusPreconditionFailed, "revision", 0},
	{instance.ErrNoOther, http.StatusConflict, "no-other", 0},
	{task.ErrChanged, http.StatusConflict, "changed", 0},
	{producer.ErrNewer, http.StatusConflict, "newer", 0},
	{task.ErrRecord, http.StatusConflict, "newer", 0},
	{task.ErrNoKey, http.StatusConflict, "no-key", 0},
	{task.ErrDamaged, http.StatusConflict, "damaged", 0},
}

// problemOf turns an error into a problem. One that is unknown is only called an internal error: known is false, and the caller
// logs it.
func problemOf(err error) (p *Problem, known bool) {
	if errors.As(err, &p) {
		return p, true
	}
	p = &Problem{Detail: sentence(err)}
	var own *refusal
	var tooLarge *http.MaxBytesError
	var state *admin.StateError
	var taken *task.Refused
	switch {
	case errors.As(err, &own):
		if own.status == http.StatusTooManyRequests || own.status == http.StatusServiceUnavailable {
			p.wait = 1
		}
		return p.as(own.status, own.kind), true
	case errors.As(err, &tooLarge):
		p.Detail = "the body is over " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"
		return p.as(http.StatusRequestEntityTooLarge, "too-large"), true
	case errors.As(err, &state):
		p.ID, p.State, p.Want = state.ID, state.State, state.Want
		return p.as(http.StatusConflict, "state"), true
	case errors.As(err, &taken):
		p.ID, p.Taken = taken.ID, taken.By
	}
	for _, a := range answers {
		if errors.Is(err, a.match) {
			p.wait, p.Errors = a.wait, fieldsOf(err)
			return p.as(a.status, a.kind), true
		}
	}
	return (&Problem{Detail: "internal error"}).as(http.StatusInternalServerError, "internal"), false
}

func (p *Problem) as(status int, kind string) *Problem {
	p.Type, p.Title, p.Status = problemURN+kind, http.StatusText(status), status
	return p
}

// sentence returns what the onbeat command prints for an error.
func sentence(err error) string {
	if hint := admin.Hint(err); hint != "" {
		return wording.WithHint(admin.Brief(err), hint)
	}
	return err.Error()
}

// fieldsOf returns the fields that an error refuses, without what an error around them hides; see [handlers.Hide].
func fieldsOf(err error) []FieldProblem {
	return fieldsBehind(err, func(text string) string { return text })
}

func fieldsBehind(err error, veil func(string) string) (list []FieldProblem) {
	if own, ok := err.(interface{ Veil(text string) string }); ok { // it looks at each error of the tree
		outer := veil
		veil = func(text string) string { return outer(own.Veil(text)) }
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { // as above
		for _, one := range many.Unwrap() {
			list = append(list, fieldsBehind(one, veil)...)
		}
		return list
	}
	if f, ok := err.(*task.FieldError); ok { //nolint:errorlint // as above
		return []FieldProblem{{Field: f.Field, Value: wording.Cut(veil(f.Value), 60), Reason: veil(f.Reason), Hint: f.Hint}}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return fieldsBehind(inner, veil)
	}
	return nil
}

// pointer returns the JSON pointer of a field: tasks[3].id is #/tasks/3/id.
func pointer(name string) string {
	path := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return "#/" + strings.NewReplacer("[", "/", "].", "/", "]", "", ".", "/").Replace(path)
}

// problem writes an error as problem+json. The status is that of the error; if the error has none, it is the one given.
func problem(w http.ResponseWriter, status int, err error) {
	p, known := problemOf(err)
	if !known && status < http.StatusInternalServerError {
		p = (&Problem{Detail: sentence(err)}).as(status, strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "-"))
	}
	write(w, p)
}

func write(w http.ResponseWriter, p *Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemJSON)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
