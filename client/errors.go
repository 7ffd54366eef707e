package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// ErrToken reports that the API does not let the token do this, or asks for one.
var ErrToken = errors.New("the API refuses the token")

// ErrStrange reports an answer that is not one of the API of onbeat.
var ErrStrange = errors.New("not an answer of onbeat")

// brokenError says that the API did not answer, or not to the end. It may or may not have done the call.
type brokenError struct {
	base string
	err  error
}

func (e *brokenError) Error() string {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return e.base + ": no answer in time"
	}
	return e.base + ": " + e.err.Error()
}

func (e *brokenError) Unwrap() []error { return []error{task.ErrUnreachable, e.err} }

// limitedError says that the API asks to slow down.
type limitedError struct {
	answer
	wait time.Duration
}

// runningError says that the API still works on an earlier try of the call.
type runningError struct{ answer }

// tokenError says that there is no token to send.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// answer is an error that the API answered, in its words, with the errors that it matches here.
type answer struct {
	text string
	is   []error
}

func (e *answer) Error() string   { return e.text }
func (e *answer) Unwrap() []error { return e.is }

// broken returns the error of a request without an answer. The end of the caller's context is no fault of the API.
func (c *conn) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	var token *tokenError
	if errors.As(err, &token) {
		return token
	}
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	return &brokenError{c.base, err}
}

func (c *conn) strange(what string) error {
	return fmt.Errorf("%s %s: %w", c.base, what, ErrStrange)
}

// kinds says what each kind of problem matches here. The field errors, states and duplicates are made anew.
var kinds = map[string]error{
	"archive": archive.ErrUnavailable, "unreplicated": task.ErrUnreplicated, "suspect": store.ErrSuspect, "unreachable": task.ErrUnreachable, "busy": task.ErrBusy,
	"full": task.ErrFull, "denied": task.ErrDenied, "wrong-type": store.ErrWrongType, "interrupted": task.ErrUnreachable,
	"not-found": task.ErrNotFound, "changed": task.ErrChanged, "bulk": admin.ErrBulks, "no-other": instance.ErrNoOther, "newer": producer.ErrNewer, "revision": admin.ErrRevision,
	"invalid": task.ErrInvalid, "no-key": task.ErrNoKey, "damaged": task.ErrDamaged,
}

// problem is an error as the API answers it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Field  string `json:"field"`
		Value  string `json:"value"`
		Reason string `json:"reason"`
		Hint   string `json:"hint"`
	} `json:"errors"`
	ID    string          `json:"id"`
	State admin.TaskState `json:"state"`
	Want  admin.TaskState `json:"want"`
	Taken string          `json:"taken"`
}

// refused turns an answer of 300 and above back into the error that the call has without the API.
func (c *conn) refused(resp *http.Response, text []byte) error {
	var p problem
	if mediaOf(resp) != "application/problem+json" || json.Unmarshal(text, &p) != nil || p.Detail == "" {
		return c.foreign(resp)
	}
	kind := p.Type[strings.LastIndexByte(p.Type, ':')+1:]
	a := answer{text: p.Detail}
	switch status := resp.StatusCode; {
	case kind == "state" && p.State != "":
		return &admin.StateError{ID: p.ID, State: p.State, Want: p.Want}
	case p.Taken != "":
		return &task.Refused{By: p.Taken, ID: p.ID}
	case len(p.Errors) > 0:
		return p.fields()
	case status == http.StatusTooManyRequests:
		a.is = []error{task.ErrBusy}
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &limitedError{a, time.Duration(max(seconds, 1)) * time.Second}
	case kind == "running":
		return &runningError{a}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		a.is = []error{ErrToken}
	case kinds[kind] != nil:
		a.is = []error{kinds[kind]}
	case status == http.StatusServiceUnavailable: // a kind of a newer release
		a.is = []error{task.ErrBusy}
	}
	return &a
}

// fields returns the refused fields. Alone, and said in no more words, a field is the error itself.
func (p *problem) fields() error {
	a := answer{text: p.Detail}
	for _, f := range p.Errors {
		a.is = append(a.is, &task.FieldError{Field: f.Field, Value: f.Value, Reason: f.Reason, Hint: f.Hint})
	}
	if len(a.is) == 1 && a.is[0].Error() == p.Detail {
		return a.is[0]
	}
	return &a
}

// foreign returns the error of an answer that is no problem of onbeat's: another server, or a proxy before it.
func (c *conn) foreign(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return &brokenError{c.base, fmt.Errorf("a proxy answers: %s", resp.Status)}
	case code < 400:
		return c.strange("redirects, to " + strconv.Quote(wording.Cut(hostOf(resp.Header.Get("Location")), 60)))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &answer{c.base + ": " + resp.Status, []error{ErrToken}}
	}
	return c.strange("answers with " + kindOf(resp))
}

// hostOf returns a URL without what may be secret in it.
func hostOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
