package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// The exit codes.
const (
	exitFine   = 0
	exitFailed = 1 // the command failed
	exitAsked  = 2 // the arguments or the config are wrong
)

// usageError reports wrong arguments: exit code 2.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return wording.WithHint(e.text, e.hint) }

// failure is an error with a hint: exit code 1.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return wording.WithHint(e.err.Error(), e.hint) }
func (e *failure) Unwrap() error { return e.err }

// exitStatus is an exit code of its own, with an error to print, if any.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string { return fmt.Sprintf("exit %d: %v", e.code, e.err) }
func (e *exitStatus) Unwrap() error { return e.err }

// errSaid ends a command with code 1 when it has printed all there is to say.
var errSaid = errors.New("said")

// parseError turns an error of the parser into one line.
func parseError(err error) error {
	if errors.As(err, new(*usageError)) || errors.As(err, new(*unwritten)) {
		return err
	}
	var at *kong.Context
	var refused *kong.ParseError
	if errors.As(err, &refused) {
		at = refused.Context
	}
	text := err.Error()
	for _, kind := range []string{"unexpected argument ", "unknown flag --"} {
		if value, ok := strings.CutPrefix(text, kind); ok {
			text = kind + secret.Value(value)
		}
	}
	return &usageError{text, helpOf(at)}
}

// complain prints an error in one line on stderr, and returns the exit code.
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
	return errors.As(err, &usage) || errors.Is(err, task.ErrInvalid) || errors.Is(err, queue.ErrPartitions) && !errors.Is(err, queue.ErrNumberLost)
}

// explain adds a hint to an error that has a common cause.
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

// inWords returns err for an error with further words around it: explain leaves out all words around an interruption.
func inWords(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New(explain(err))
	}
	return err
}

// hintOfReplica adds to an error of a replica the hint that fits the URL.
func hintOfReplica(err error, url string) error {
	var failed *failure
	var status *exitStatus
	if !admin.OfReplica(err) || errors.As(err, &failed) || errors.As(err, &status) {
		return err
	}
	return &failure{errors.New(admin.Brief(err)), admin.PrimaryHint(url)}
}

// refuse returns the error of a wrong flag or argument.
func refuse(field, value, reason, hint string) error {
	return &task.FieldError{Field: field, Value: cmp.Or(value), Reason: reason, Hint: hint}
}
