package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// sameSignal is how soon after the first signal a second one still counts as the same request: timeout(1) sends one to the process
// and one to its group, and an instance that died of that would keep others waiting for its lease.
const sameSignal = 500 * time.Millisecond

// hurryTime is how long an instance may take to hand back its running tasks after the second request. For two seconds of it,
// handlers may return by themselves.
const hurryTime = 6 * time.Second

// errTold is the cause of a context that ended because a signal asked the program to stop.
var errTold = fmt.Errorf("stopped by a signal: %w", context.Canceled)

// hurry is the second request to stop. An instance takes it, and hands back its running tasks. Every other command ends at once.
type hurry struct {
	asked chan struct{}
	taken atomic.Bool
}

type hurryKey struct{}

// hurryOf returns a channel that is closed at the second request to stop. It returns nil outside of the program. The caller has to
// end soon after the request, because the process ends hurryTime later.
func hurryOf(ctx context.Context) <-chan struct{} {
	h, ok := ctx.Value(hurryKey{}).(*hurry)
	if !ok {
		return nil
	}
	h.taken.Store(true)
	return h.asked
}

// untilTold returns a context that ends with the first signal. The second signal is the request to hurry. A third signal ends the
// process, as does an instance that takes longer than hurryTime.
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
		fmt.Fprintln(stderr, "onbeat: stopped before all running tasks were handed back: those left run again when the lease has run out")
		exit(exitFailed)
	}()
	return ctx
}
