package scenario

import (
	"fmt"
	"sync/atomic"
	"time"
)

// tally counts how often each task is handled. The bench injects no faults, so anything but once is an error.
type tally struct {
	began   time.Time
	times   []atomic.Uint32
	strange atomic.Int64 // handled numbers that are none
	handled atomic.Int64
	want    int64
	first   atomic.Int64  // ns since began
	last    atomic.Int64  // of the last that is wanted
	all     chan struct{} // closed when as many as wanted were handled
}

// newTally expects n tasks; with want 0 it does not know how many will come here.
func newTally(n, want int) *tally {
	return &tally{times: make([]atomic.Uint32, n), want: int64(want), all: make(chan struct{}), began: time.Now()}
}

func (t *tally) handle(n int) {
	if n < 0 || n >= len(t.times) {
		t.strange.Add(1)
		return
	}
	t.times[n].Add(1)
	k := t.handled.Add(1)
	if k == 1 {
		t.first.Store(int64(time.Since(t.began)))
	}
	if k == t.want {
		t.last.Store(int64(time.Since(t.began)))
		close(t.all)
	}
}

// wait waits until all are handled, for as long as some are.
func (t *tally) wait() error {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for seen := int64(-1); ; {
		select {
		case <-t.all:
			return nil
		case <-tick.C:
			k := t.handled.Load()
			if k == seen {
				return fmt.Errorf("only %d of %d tasks were handled, and no other in %s", k, t.want, patience)
			}
			seen = k
		}
	}
}

// seconds are those from the start until the last task.
func (t *tally) seconds() float64 { return time.Duration(t.last.Load()).Seconds() }

// firstMs is the time to the first task.
func (t *tally) firstMs() float64 { return time.Duration(t.first.Load()).Seconds() * 1e3 }

// counts are the times each task was handled.
func (t *tally) counts() []byte {
	b := make([]byte, len(t.times))
	for i := range t.times {
		b[i] = byte(min(t.times[i].Load(), 255))
	}
	return b
}

// once returns an error unless each task was handled exactly once.
func (t *tally) once() error {
	if n := t.strange.Load(); n > 0 {
		return fmt.Errorf("%d runs of tasks that nobody added", n)
	}
	return Once(t.counts())
}

// Once returns an error unless each count is one.
func Once(counts []byte) error {
	var never, more int
	for _, n := range counts {
		switch {
		case n == 0:
			never++
		case n > 1:
			more++
		}
	}
	if never+more > 0 {
		return fmt.Errorf("not exactly once: of %d tasks, %d were never handled and %d more than once", len(counts), never, more)
	}
	return nil
}
