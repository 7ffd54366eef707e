package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// The exit codes.
const (
	exitFine   = 0
	exitFailed = 1 // it failed
	exitAsked  = 2 // you asked wrongly
)

// usageError is a question that makes no sense: exit code 2.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return wording.WithHint(e.text, e.hint) }

// failure is what failed, and what may help: exit code 1.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return wording.WithHint(e.err.Error(), e.hint) }
func (e *failure) Unwrap() error { return e.err }

// exitStatus is an exit code of its own, and what to say, if anything.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string { return fmt.Sprintf("exit %d: %v", e.code, e.err) }
func (e *exitStatus) Unwrap() error { return e.err }

// errSaid ends a command with code 1 after it has said all there is to say.
var errSaid = errors.New("said")

// parseError is what the parser refuses, in one line.
func parseError(err error) error {
	if errors.As(err, new(*usageError)) || errors.As(err, new(*unwritten)) {
		return err
	}
	var at *kong.Context
	var refused *kong.ParseError
	if errors.As(err, &refused) {
		at = refused.Context
	}
	return &usageError{err.Error(), helpOf(at)}
}

// complain says in one line on stderr what went wrong, and returns the exit code.
func complain(stderr io.Writer, err error) int {
	var status *exitStatus
	switch {
	case errors.As(err, &status):
		complain(stderr, status.err)
		return status.code
	case err == nil:
		return exitFine
	case errors.Is(err, errSaid), isUnread(err):
		return exitFailed
	}
	fmt.Fprintln(stderr, "onbeat:", said(err))
	if askedWrongly(err) {
		return exitAsked
	}
	return exitFailed
}

func askedWrongly(err error) bool {
	var usage *usageError
	return errors.As(err, &usage) || errors.Is(err, task.ErrInvalid)
}

// explain adds a hint to what has a common cause.
func explain(err error) string {
	var failed *failure
	if errors.As(err, &failed) {
		return err.Error()
	}
	if hint, ok := tlsHint(err); ok {
		return wording.WithHint(err.Error(), hint)
	}
	if hint := admin.Hint(err); hint != "" {
		return wording.WithHint(admin.Brief(err), hint)
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// hintOfReplica gives an error of a replica the hint that fits the URL.
func hintOfReplica(err error, url string) error {
	var failed *failure
	var status *exitStatus
	if !admin.OfReplica(err) || errors.As(err, &failed) || errors.As(err, &status) {
		return err
	}
	return &failure{errors.New(admin.Brief(err)), admin.PrimaryHint(url)}
}

// refuse is a field that a flag or argument got wrong.
func refuse(field, value, reason, hint string) error {
	return &task.FieldError{Field: field, Value: cmp.Or(value), Reason: reason, Hint: hint}
}
