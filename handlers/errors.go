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
	// Every error made by [Dead] matches ErrDead.
	ErrDead = errors.New("no more attempts")

	// ErrUnknownType is returned by a [Mux] that has no handler for the type of a task.
	ErrUnknownType = errors.New("no handler for this type")

	// ErrUnknownField is matched by the refusal of a payload that has a field the handler does not know. A run that fails with
	// it is retried, because a newer release may know the field.
	ErrUnknownField = errors.New("unknown field")

	// ErrGoexit is what [Do] reports for a handler that ended its goroutine with [runtime.Goexit] and so returned nothing.
	// The usual cause is a test helper such as t.FailNow in a handler.
	ErrGoexit = errors.New("handler called runtime.Goexit")
)

// Dead says that a retry is useless: the task leaves the due set at once and is kept among the dead, with err. The error
// reads like err, unwraps to it and matches [ErrDead]. Dead(nil) is nil, so `return handlers.Dead(f())` is right.
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

// IsDead reports whether err, or an error it wraps, was made by [Dead]. Such an error takes precedence over [RetryAfter].
func IsDead(err error) bool { return errors.Is(err, ErrDead) }

// RetryAfter fails the run and schedules the next attempt in d, in place of the task's backoff. The attempt counts: if it
// was the last one allowed, the task is dead all the same. A negative d is zero. RetryAfter(nil, d) is nil.
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

// RetryDelay returns the delay of the outermost [RetryAfter] within err, and whether there is one.
func RetryDelay(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.after, true
	}
	return 0, false
}

// PanicError is a panic in a handler: a failed run like any other. It unwraps to the value of the panic if that value is an
// error.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked, from the call that panicked down.
	Stack []byte
}

// Error is one line, without the stack; see [Report].
func (e *PanicError) Error() string { return "panic: " + oneLine(fmt.Sprint(e.Value), maxPanicText) }

// Unwrap returns Value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

const maxPanicText = 1 << 10

// newPanicError must be called by the deferred function that recovered, while the frames of the panic are still on the
// stack.
func newPanicError(value any) *PanicError {
	stack := debug.Stack()
	// Above the call that panicked are the frames of this recovery, which say nothing: all up to the line "panic(...)" and
	// its position.
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

// Report returns the text of err to keep with the task: its message and, if err holds a [*PanicError], the stack. Only then
// is it longer than one line.
func Report(err error) string {
	if err == nil {
		return ""
	}
	if p, ok := errors.AsType[*PanicError](err); ok {
		return err.Error() + "\n" + string(p.Stack)
	}
	return err.Error()
}

// oneLine makes text from elsewhere fit for an error message: valid UTF-8, each run of control characters and white space
// replaced by one blank, at most limit bytes.
func oneLine(s string, limit int) string {
	var b strings.Builder
	blank := false
	for _, r := range s { // an invalid byte arrives as U+FFFD
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

// cleaned is an error whose text fits on one line, whatever it came from.
type cleaned struct{ error }

func (c cleaned) Error() string { return oneLine(c.error.Error(), 4*errorBody) }
func (c cleaned) Unwrap() error { return c.error }

// clean makes the text of an error fit for an error message. The error may quote an answer or a payload.
func clean(err error) error {
	if err == nil || strings.IndexFunc(err.Error(), func(r rune) bool { return r != ' ' && !shows(r) }) < 0 {
		return err
	}
	return cleaned{err}
}

// shows reports whether a line may have the character. It may not have white space, control characters and characters that
// change the direction of text.
func shows(r rune) bool {
	switch {
	case r <= ' ', r >= 0x7f && r <= 0xa0, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return false
	}
	return true
}
