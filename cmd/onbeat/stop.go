package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// sameSignal is how soon after the first a second signal is the same request: timeout(1) sends one to the process and one to
// its group, and an instance that dies of that keeps others waiting for its lease.
const sameSignal = 500 * time.Millisecond

// hurryTime is how long an instance may take to hand back what it runs when it is told to hurry. Handlers have two seconds of it
// to return.
const hurryTime = 6 * time.Second

// errTold is why a context ended: a signal asked the program to stop.
var errTold = fmt.Errorf("told to stop: %w", context.Canceled)

// hurry is the second request to stop. An instance takes it, and hands back its running tasks. Every other command is ended by it
// at once.
type hurry struct {
	asked chan struct{}
	taken atomic.Bool
}

type hurryKey struct{}

// hurryOf returns a channel that is closed at the second request to stop; it is nil outside of the program. A caller has to end
// soon after that: hurryTime later the process does.
func hurryOf(ctx context.Context) <-chan struct{} {
	h, ok := ctx.Value(hurryKey{}).(*hurry)
	if !ok {
		return nil
	}
	h.taken.Store(true)
	return h.asked
}

// untilTold is a context that ends with the first signal. The second is a request to hurry; a third, or hurrying for too long,
// ends the process.
func untilTold(ctx context.Context, signals <-chan os.Signal, stderr io.Writer, exit func(int)) context.Context {
	h := &hurry{asked: make(chan struct{})}
	ctx, stop := context.WithCancelCause(context.WithValue(ctx, hurryKey{}, h))
	go func() {
		<-signals
		stop(errTold)
		for told := time.Now(); time.Since(told) <= sameSignal; {
			<-signals
		}
		if !h.taken.Load() {
			exit(exitFailed)
			return
		}
		close(h.asked)
		select {
		case <-signals:
		case <-time.After(hurryTime):
		}
		fmt.Fprintln(stderr, "onbeat: stopped before all was handed back: it runs again when the lease has run out")
		exit(exitFailed)
	}()
	return ctx
}
