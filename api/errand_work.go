package api

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/admin"
)

const (
	errandsAtOnce = 4               // that this server works on
	errandLook    = 5 * time.Second // between two looks for errands that nobody works on
)

// errandWork works on errands, whoever began them, until it is closed.
type errandWork struct {
	worker admin.Worker // nil: another process works on them
	log    zerolog.Logger
	ctx    context.Context //nolint:containedctx // it ends with the server, not with a request
	stop   context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	atWork int
	closed bool
}

func newErrandWork(w admin.Worker, log zerolog.Logger) *errandWork {
	ctx, stop := context.WithCancel(context.Background())
	return &errandWork{worker: w, log: log, ctx: ctx, stop: stop}
}

// look has errands worked on, if there are any that nobody works on, and as many at once as may be.
func (w *errandWork) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.worker == nil || w.atWork == errandsAtOnce {
		return
	}
	w.atWork++
	w.all.Go(w.run)
}

// run works on one errand after the other, while there are any.
func (w *errandWork) run() {
	for w.ctx.Err() == nil && w.one() {
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atWork--
}

func (w *errandWork) one() (some bool) {
	defer func() {
		if bug := recover(); bug != nil {
			w.log.Error().Any("panic", bug).Bytes("stack", debug.Stack()).Msg("an errand failed: this is a bug")
		}
	}()
	some, err := w.worker.WorkErrand(w.ctx)
	if err != nil {
		w.log.Warn().Err(err).Msg("an errand failed")
	}
	return some
}

// follow looks for errands again and again until it is stopped: for those of an instance that was lost, or that had no room for them.
func (w *errandWork) follow() (stop context.CancelFunc) {
	ctx, stop := context.WithCancel(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed && w.worker != nil {
		w.all.Go(func() {
			for w.look(); pause(ctx, errandLook) == nil; {
				w.look()
			}
		})
	}
	return stop
}

// close leaves the errands to others, and waits until this is noted.
func (w *errandWork) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.all.Wait()
}
