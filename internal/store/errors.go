package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

// The errors of Redis that callers tell apart, besides those of package task. Match them with errors.Is.
var (
	// ErrSuspect: the primary lost a replica a moment ago, and may not be the primary any more. Its claims are held back. Retry.
	ErrSuspect = errors.New("redis may not be the primary any more")
	// ErrWrongType: another program has overwritten a key of onbeat's with a key of another type. Nothing was done.
	ErrWrongType = errors.New("a key of onbeat has the wrong type")
)

// Retryable reports whether the same call may succeed a moment later without help from a person.
func Retryable(err error) bool {
	return errors.Is(err, task.ErrUnreachable) || errors.Is(err, task.ErrBusy) || errors.Is(err, task.ErrUnreplicated) || errors.Is(err, ErrSuspect)
}

// LacksRight reports whether an [task.ErrDenied] is about one right that the user lacks, and not about the user or the password.
func LacksRight(err error) bool {
	return errors.Is(err, task.ErrDenied) && slices.ContainsFunc([]string{"NOPERM", deniedInScript, deniedInScriptOfValkey}, func(said string) bool {
		return strings.Contains(err.Error(), said)
	})
}

// The words of Redis 7 and later in place of NOPERM if a script calls the command, and the words of Valkey 9.1 and later.
const (
	deniedInScript         = "The user executing the script can't"
	deniedInScriptOfValkey = "ACL failure in script"
)

// WrongTypeError is an [ErrWrongType] with the keys that the script was called with.
type WrongTypeError struct {
	error
	Keys []string
}

// Unwrap returns the error of Redis.
func (e *WrongTypeError) Unwrap() error { return e.error }

// Refusal makes the error that [Classify] returns when a script refuses with a word of its own. Make it once, at start.
func Refusal(word, text string) error {
	err := errors.New(text)
	replies = append(replies, answer{word, err})
	return err
}

// answer is the beginning of an error reply of Redis or of a script, and the error that it means.
type answer struct {
	prefix string
	err    error
}

var replies = []answer{
	{"OOM", task.ErrFull}, {"WRONGTYPE", ErrWrongType},
	{"LOADING", task.ErrBusy}, {"READONLY", task.ErrBusy}, {"MOVED", task.ErrBusy}, {"ASK", task.ErrBusy}, {"TRYAGAIN", task.ErrBusy},
	{"CLUSTERDOWN", task.ErrBusy}, {"MASTERDOWN", task.ErrBusy}, {"BUSY", task.ErrBusy}, {"NOREPLICAS", task.ErrBusy},
	{awayInScript, task.ErrBusy}, {"Script attempted to execute a write command while the cluster is down", task.ErrBusy},
	{"UNBLOCKED", task.ErrBusy}, {"MISCONF", task.ErrBusy}, {"ERR max number of clients", task.ErrBusy},
	{"NOAUTH", task.ErrDenied}, {"WRONGPASS", task.ErrDenied}, {"NOPERM", task.ErrDenied},
	{deniedInScript, task.ErrDenied}, {deniedInScriptOfValkey, task.ErrDenied},
	{"Protocol error: unauthenticated", task.ErrDenied}, // the reply to a long command before AUTH
}

// Classify wraps an error of go-redis with the sentinel error that it means. It returns nil, redis.Nil, a cancelled context,
// and an error that it does not know as they are. A deadline that has passed counts as [task.ErrUnreachable].
func Classify(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		text := strings.TrimPrefix(reply.Error(), "ERR ")
		if known, _, ok := strings.Cut(text, ", with args beginning with"); ok {
			return errors.New(known) // a proxy may not know AUTH, and quotes its arguments, which are the password
		}
		inScript := strings.HasPrefix(text, "Error running script") // of Redis 6.2, which names the place before the error
		for _, r := range replies {
			if strings.HasPrefix(text, r.prefix) || strings.HasPrefix(reply.Error(), r.prefix) || strings.Contains(text, "-"+r.prefix+" ") ||
				inScript && strings.Contains(text, ": "+r.prefix) {
				return fmt.Errorf("%w: %w", r.err, err)
			}
		}
		return err
	}
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", task.ErrUnreachable, err)
	}
	return err
}

// NotSent reports whether the call certainly did not reach Redis.
func NotSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}
