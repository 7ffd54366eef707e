package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/store"
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
	switch {
	case errors.Is(err, store.ErrFull):
		return wording.WithHint(err.Error(), "nothing was written; raise maxmemory, or see onbeat doctor")
	case errors.Is(err, store.ErrWrongType):
		return wording.WithHint(err.Error(), `"onbeat doctor" names the key; a running leader sets it aside within 30 s`)
	case errors.Is(err, store.ErrDenied) && strings.Contains(err.Error(), "docs/rights.md"): // it says what is missing
	case store.LacksRight(err):
		return wording.WithHint(err.Error(), "the user lacks a right: "+rightsPage)
	case errors.Is(err, store.ErrDenied):
		return wording.WithHint(err.Error(), "check the user and password of the Redis URL")
	case errors.Is(err, store.ErrUnreplicated):
		return wording.WithHint(err.Error(), "it is done on the primary, and lost if that is lost now; ask again when replicas are back: onbeat doctor")
	case ofReplica(err):
		return wording.WithHint(saidBriefly(err), namePrimary)
	case hintOf(err) != "":
		return wording.WithHint(saidBriefly(err), hintOf(err))
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}

// namePrimary is what to do about a Redis that takes no writes.
const namePrimary = "name the primary, or use redis-sentinel:// or redis-cluster://"

// askSentinels is the same for who has named the sentinels.
const askSentinels = "the sentinels name a replica, or did until now: look at `redis-cli -p 26379 sentinel masters` of each"

func primaryHint(url string) string {
	if scheme, _, _ := strings.Cut(url, "://"); strings.HasSuffix(scheme, "-sentinel") {
		return askSentinels
	}
	return namePrimary
}

// hintOfReplica gives an error of a replica the hint that fits the URL.
func hintOfReplica(err error, url string) error {
	var failed *failure
	var status *exitStatus
	if !ofReplica(err) || errors.As(err, &failed) || errors.As(err, &status) {
		return err
	}
	return &failure{errors.New(saidBriefly(err)), primaryHint(url)}
}

// saidBriefly leaves out where in a script it was, which is nobody's matter.
func saidBriefly(err error) string {
	said, _, _ := strings.Cut(err.Error(), " script: ")
	return said
}

// hintOf is what to do about what Redis cannot do now, or "".
func hintOf(err error) string {
	switch {
	case !errors.Is(err, store.ErrBusy):
		return ""
	case store.OfMove(err):
		return "is the cluster being resharded? it ends with that; a move that was broken off is ended by redis-cli --cluster fix HOST:PORT"
	case strings.Contains(err.Error(), "CLUSTERDOWN"), strings.Contains(err.Error(), "while the cluster is down"):
		return "a part of the cluster has no primary: see redis-cli --cluster check HOST:PORT"
	case strings.Contains(err.Error(), "max number of clients"):
		return maxClientsHint
	}
	return ""
}

// maxClientsHint is what to do about a Redis that takes no more connections.
const maxClientsHint = "raise maxclients, or close connections that idle: CLIENT LIST shows whose they are, and timeout closes them"

// ofReplica reports whether a replica was asked to write.
func ofReplica(err error) bool {
	return errors.Is(err, store.ErrBusy) && strings.Contains(err.Error(), "READONLY")
}

// refuse is a field that a flag or argument got wrong.
func refuse(field, value, reason, hint string) error {
	return &task.FieldError{Field: field, Value: cmp.Or(value), Reason: reason, Hint: hint}
}
