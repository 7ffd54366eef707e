package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// Worker works on errands, such as in an API that serves them.
type Worker interface {
	// WorkErrand takes an errand that nobody works on, and works on it until it is done, fails, is stopped, or ctx ends: then it leaves
	// the errand to another worker, within a few seconds. It returns false if there is none to take, and the error with which an errand
	// failed.
	WorkErrand(ctx context.Context) (bool, error)
}

const (
	errandPage   = 30 * time.Second // of work on a page; less than queue.ErrandSilence
	errandLeave  = 2 * time.Second  // until a page that is under way when the worker has to leave is cut off
	errandNote   = 5 * time.Second  // until a note is given up, and made again
	errandTries  = 12               // of one page in vain, half a minute in all, before the errand fails
	errandPause  = 100 * time.Millisecond
	errandPauses = 5 * time.Second // the longest
)

func (e *errands) WorkErrand(ctx context.Context) (bool, error) {
	x, ok, err := e.q.TakeErrand(ctx)
	if err != nil || !ok {
		return false, nil //nolint:nilerr // the next look finds it
	}
	if err := e.work(ctx, &x); err != nil {
		return true, fmt.Errorf("errand %q: %w", x.ID, err)
	}
	return true, nil
}

// work does page after page, and notes after each how far it is. It returns the error with which the errand failed.
func (e *errands) work(ctx context.Context, x *queue.Errand) error {
	for tries, wait := 0, errandPause; ; wait = min(2*wait, errandPauses) {
		before := x.Changed
		err := e.page(ctx, x)
		if tries++; err == nil || x.Changed > before {
			tries, wait = 0, errandPause
		}
		failed := err != nil && (!store.Retryable(err) && ctx.Err() == nil || tries == errandTries)
		if failed {
			x.State, x.Said = queue.ErrandFailed, wording.WithHint(Brief(err), Hint(err))
		}
		switch {
		case !e.note(ctx, x):
			return nil
		case failed:
			return err
		case x.State != queue.ErrandRunning:
			return nil
		case err != nil:
			pause(ctx, wait)
		}
	}
}

// page does one page. What failed of it is met again, so it counts only what it changed. When ctx ends, the page that is under way has a
// moment to finish: the tasks of one that is cut off would be met twice.
func (e *errands) page(ctx context.Context, x *queue.Errand) error {
	s, err := askedOf(x)
	if err != nil {
		return err
	}
	bound, done := context.WithTimeout(context.WithoutCancel(ctx), errandPage)
	defer done()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(errandLeave, done) })()
	page, err := e.tasks.Bulk(By(bound, x.By), Bulk{Action: s.Action, Filter: s.Filter, After: x.Cursor})
	x.Changed += page.Changed
	if err != nil {
		x.Matched += page.Changed
		return err
	}
	x.Matched, x.Unreadable, x.Cursor = x.Matched+page.Matched, x.Unreadable+page.Unreadable, page.Next
	if x.Cursor == "" {
		x.State = queue.ErrandDone
	}
	return nil
}

// note notes how far the errand is, until Redis has it. When ctx has ended it tries once, and leaves the errand to another worker. It
// reports whether it is noted: not if another has the errand.
func (e *errands) note(ctx context.Context, x *queue.Errand) bool {
	for wait := errandPause; ; wait = min(2*wait, errandPauses) {
		leaves := ctx.Err() != nil
		if leaves && x.State == queue.ErrandRunning {
			x.State = queue.ErrandWaiting
		}
		bound, done := context.WithTimeout(context.WithoutCancel(ctx), errandNote)
		held, err := e.q.NoteErrand(bound, x)
		done()
		if err == nil {
			return held
		}
		if leaves {
			return false
		}
		pause(ctx, wait)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
