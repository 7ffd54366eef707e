package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

var (
	// ErrDead is matched by every error made by [Dead].
	ErrDead = errors.New("no more attempts")

	// ErrUnknownType is returned by a [Mux] that has no handler for the type of a task.
	ErrUnknownType = errors.New("no handler for this type")

	// ErrGoexit is what [Do] reports for a handler that ended its goroutine with [runtime.Goexit] and so returned
	// nothing. A test helper such as t.FailNow called in a handler is the usual cause.
	ErrGoexit = errors.New("handler called runtime.Goexit")
)

// Dead says that another attempt is of no use: the task leaves the due set at once and is kept among the dead, with
// err. It reads like err, unwraps to it and matches [ErrDead]. Dead(nil) is nil, so `return handlers.Dead(f())` is
// right.
func Dead(err error) error {
	if err == nil {
		return nil
	}
	return &deadError{err}
}

type deadError struct{ err error }

func (e *deadError) Error() string        { return e.err.Error() }
func (e *deadError) Unwrap() error        { return e.err }
func (e *deadError) Is(target error) bool { return target == ErrDead }

// IsDead reports whether err, or an error it wraps, was made by [Dead]. Such an error wins over [RetryAfter].
func IsDead(err error) bool { return errors.Is(err, ErrDead) }

// RetryAfter fails the run and puts the next attempt d from now, in place of the task's backoff. The attempt counts:
// the last one allowed makes the task dead all the same. A negative d is zero. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, max(d, 0)}
}

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryDelay is the delay given to [RetryAfter], of the outermost one within err, and whether there is one.
func RetryDelay(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.after, true
	}
	return 0, false
}

// PanicError is a panic in a handler: a failed run like any other. It unwraps to the value of the panic if that is
// an error.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the panicking goroutine, from the call that panicked downwards.
	Stack []byte
}

// Error is one line, without the stack; see [Report].
func (e *PanicError) Error() string { return "panic: " + oneLine(fmt.Sprint(e.Value), maxPanicText) }

// Unwrap is Value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

const maxPanicText = 1 << 10

// newPanicError is called by the deferred function that recovered, where the frames of the panic are still on the
// stack.
func newPanicError(value any) *PanicError {
	stack := debug.Stack()
	// Above the call that panicked lie the frames of this recovery, which say nothing: all up to "panic(...)" and its
	// place.
	if i := bytes.Index(stack, []byte("\npanic(")); i >= 0 {
		rest := stack[i+1:]
		for range 2 {
			if nl := bytes.IndexByte(rest, '\n'); nl >= 0 {
				rest = rest[nl+1:]
			}
		}
		stack = bytes.Clone(rest)
	}
	return &PanicError{Value: value, Stack: stack}
}

// Report is the text of err that is worth keeping with the task: its message and, if it holds a [*PanicError], the
// stack. It is longer than one line only then.
func Report(err error) string {
	if err == nil {
		return ""
	}
	if p, ok := errors.AsType[*PanicError](err); ok {
		return err.Error() + "\n" + string(p.Stack)
	}
	return err.Error()
}

// oneLine makes foreign text fit for an error message: valid UTF-8, control characters and runs of white space as
// one blank, at most limit bytes.
func oneLine(s string, limit int) string {
	var b strings.Builder
	blank := false
	for _, r := range s { // a bad byte comes as U+FFFD
		if !shows(r) {
			blank = b.Len() > 0
			continue
		}
		if b.Len()+len(string(r))+1 > limit {
			b.WriteString("…")
			break
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cleaned is an error whose text is fit for one line, whoever wrote it.
type cleaned struct{ error }

func (c cleaned) Error() string { return oneLine(c.error.Error(), 4*errorBody) }
func (c cleaned) Unwrap() error { return c.error }

// clean makes the text of an error that may quote an answer, or a payload, fit for an error message.
func clean(err error) error {
	if err == nil || strings.IndexFunc(err.Error(), func(r rune) bool { return r != ' ' && !shows(r) }) < 0 {
		return err
	}
	return cleaned{err}
}

// shows tells a character that a line may have from white space, control characters and those that turn the direction
// of text around.
func shows(r rune) bool {
	switch {
	case r <= ' ', r >= 0x7f && r <= 0xa0, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return false
	}
	return true
}
