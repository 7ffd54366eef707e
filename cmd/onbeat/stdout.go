package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// unwritten is a write that failed. A closed pipe among them is no error to report: its reader has left on purpose.
type unwritten struct{ err error }

func (e *unwritten) Error() string { return "cannot write the output: " + e.err.Error() }
func (e *unwritten) Unwrap() error { return e.err }

func notWritten(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // people know what stdout is called
	}
	return &unwritten{err}
}

// isUnread reports whether err is about output that nobody reads any more.
func isUnread(err error) bool {
	var e *unwritten
	return errors.As(err, &e) && errors.Is(e.err, syscall.EPIPE)
}

// orLost is what a command ends with: its own error, or else the first write to its stdout that failed. Few commands check
// each print, and an ID or a verdict that never arrived is a failure all the same.
func (t *terminal) orLost(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil && (err == nil || errors.Is(err, errSaid)) {
		return t.lost
	}
	return err
}

// lose notes that a write failed.
func (t *terminal) lose(err error) error {
	err = notWritten(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = err
	}
	return err
}

// readEvery is how often to look whether a pipe is still read.
const readEvery = 200 * time.Millisecond

// whileRead is a context that also ends when the reader of stdout has closed its end. A command that prints only now and
// then would learn it from its next write, which may never come.
func (a *app) whileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t, _ := a.out.(*terminal)
	file, ok := unfiltered(a.out).(*os.File)
	if t == nil || !ok {
		return ctx, cancel
	}
	go func() {
		for ctx.Err() == nil {
			if unread(file, readEvery) {
				_ = t.lose(syscall.EPIPE)
				cancel()
			}
		}
	}()
	return ctx, cancel
}
