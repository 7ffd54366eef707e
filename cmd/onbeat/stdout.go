package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// unwritten reports a failed write. If the pipe was closed, the command prints no error: its reader left on purpose.
type unwritten struct{ err error }

func (e *unwritten) Error() string { return "cannot write the output: " + e.err.Error() }
func (e *unwritten) Unwrap() error { return e.err }

func notWritten(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the name of stdout tells people nothing
	}
	return &unwritten{err}
}

// isUnread reports whether err is about output whose reader has left.
func isUnread(err error) bool {
	var e *unwritten
	return errors.As(err, &e) && errors.Is(e.err, syscall.EPIPE)
}

// orLost returns the error that a command ends with: its own, or else that of the first write to its stdout that failed. Few
// commands check each print, and it is a failure, too, if an ID or a verdict never arrived.
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

// readEvery is how often to check whether a pipe still has its reader.
const readEvery = 200 * time.Millisecond

// whileRead returns a context that also ends when the reader of stdout closes its end. A command that prints only now and then
// would otherwise learn it from its next write, which may never come.
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
