package consumer

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostIdle is how many idle workers a session keeps, and keepIdle how long at least, and twice as long at most. More do not
// help: as many as one call claims begin at once.
const (
	mostIdle = 256
	keepIdle = 5 * time.Second
)

// workers runs the claimed tasks of one session. A worker is a goroutine that runs one task after another, so that its
// stack has to grow only once.
//
// A claimed task joins a line. While tasks wait there, one worker is on its way to them. It takes the first, sends another
// worker on its way if more tasks wait, and only then runs its own. So each task begins at once, even if every handler so far
// blocks; and short handlers follow one another on few stacks, which are warm.
type workers struct {
	do     func(*run)
	labels context.Context // with the pprof labels that each run begins with

	mu     sync.Mutex
	line   []*run // tasks that no worker has taken yet: the oldest first, from head on
	head   int
	coming bool            // a worker is on its way to the line
	idle   []chan struct{} // each wakes one worker, or tells it to leave by being closed; the last one rests for the shortest time
	fewest int             // the least that were idle since dismiss last looked
	look   *time.Timer     // when dismiss looks; nil while no worker is idle
	closed bool
}

func newWorkers(labels pprof.LabelSet, do func(*run)) *workers {
	return &workers{do: do, labels: pprof.WithLabels(context.Background(), labels)}
}

// begin makes a worker run r.
func (w *workers) begin(r *run) {
	w.mu.Lock()
	if w.head > 0 && len(w.line) == cap(w.line) {
		w.line, w.head = slices.Delete(w.line, 0, w.head), 0
	}
	w.line = append(w.line, r)
	w.sendOne()
}

// sendOne sends a worker to the line, if one is needed there and none is on its way. It unlocks mu.
func (w *workers) sendOne() {
	if w.coming || w.head == len(w.line) {
		w.mu.Unlock()
		return
	}
	w.coming = true
	last := len(w.idle) - 1
	if last < 0 {
		w.mu.Unlock()
		go w.work()
		return
	}
	wake := w.idle[last]
	w.idle = w.idle[:last]
	w.fewest = min(w.fewest, last)
	w.mu.Unlock()
	wake <- struct{}{} // it has room for one, and only the worker that took it from idle sends
}

// work is a worker. If a handler ends the goroutine ([runtime.Goexit]), only this worker ends: it has sent another worker to
// the line before, if tasks wait there.
func (w *workers) work() {
	wake := make(chan struct{}, 1)
	w.clean()
	for r := w.take(wake, true); r != nil; r = w.take(wake, false) {
		w.do(r)
		if r.probe && locked() {
			r.typ.locks.Store(true)
			return // the end of the goroutine ends the thread too, and whatever the handler did to it
		}
		w.clean()
	}
}

// take returns the next run for a worker, once there is one, or nil if the worker is to leave. Arrives says that the worker was on
// its way.
func (w *workers) take(wake chan struct{}, arrives bool) *run {
	for {
		w.mu.Lock()
		if arrives {
			w.coming = false
		}
		if w.head < len(w.line) {
			r := w.line[w.head]
			w.line[w.head] = nil
			if w.head++; w.head == len(w.line) {
				w.line, w.head = w.line[:0], 0
			}
			w.sendOne()
			return r
		}
		if w.closed || len(w.idle) >= mostIdle {
			w.mu.Unlock()
			return nil
		}
		w.idle = append(w.idle, wake)
		if w.look == nil {
			w.fewest, w.look = 0, time.AfterFunc(keepIdle, w.dismiss)
		}
		w.mu.Unlock()
		if _, arrives = <-wake; !arrives {
			return nil
		}
	}
}

// dismiss lets those workers go that were idle all the time since it last looked. It looks again as long as others are idle.
func (w *workers) dismiss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	for _, wake := range w.idle[:w.fewest] {
		close(wake)
	}
	w.idle = slices.Delete(w.idle, 0, w.fewest)
	if w.fewest = len(w.idle); w.fewest == 0 {
		w.look = nil
		return
	}
	w.look.Reset(keepIdle)
}

// close lets all workers go: the idle ones now, each other one when its handler returns.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.look != nil {
		w.look.Stop()
	}
	for _, wake := range w.idle {
		close(wake)
	}
	w.idle = nil
}

// clean undoes the settings that a handler may have left on its goroutine: pprof labels, and that a fault panics.
func (w *workers) clean() {
	pprof.SetGoroutineLabels(w.labels)
	debug.SetPanicOnFault(false)
}

// taskType is the consumer's knowledge of the runs of a type.
type taskType struct {
	name  string
	runs  int         // that began; only the loop uses it
	locks atomic.Bool // the handler leaves its goroutine locked to a thread: each of its runs gets a goroutine of its own
}

// Only the text of a stack says whether a goroutine is locked to its thread, and to get that takes as long as some short
// tasks. So the consumer looks after the first runs of each type, and after one of probeEach from then on.
const (
	probeFirst = 100
	probeEach  = 64
)

// began counts a run that begins, and reports whether to look, after it, for a goroutine that it locked to its thread.
func (t *taskType) began() bool {
	t.runs++
	return t.runs <= probeFirst || t.runs%probeEach == 0
}

// locked reports whether the calling goroutine is locked to its thread ([runtime.LockOSThread]). Its stack then begins with
// such a line as "goroutine 7 [running, locked to thread]:".
func locked() bool {
	var text [256]byte
	head, _, _ := bytes.Cut(text[:runtime.Stack(text[:], false)], []byte{'\n'})
	return bytes.Contains(head, []byte("locked to thread"))
}
