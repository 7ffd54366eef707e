package admin

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

const (
	bulkPage   = 30 * time.Second // of work on a page; less than queue.BulkSilence
	bulkLeave  = time.Second      // until a page that is under way when the worker has to leave is cut off
	bulkNote   = 5 * time.Second  // until a note is given up, and made again
	bulkTries  = 12               // of one page in vain, half a minute in all, before the bulk action fails
	bulkPause  = 100 * time.Millisecond
	bulkPauses = 5 * time.Second // the longest
)

// BulkHandler handles the tasks of the type [task.BulkType].
type BulkHandler struct {
	bulks *bulks
	log   zerolog.Logger
}

// NewBulkHandler returns the handler of a namespace, which is that of the producer.
func NewBulkHandler(rdb redis.UniversalClient, namespace string, p *producer.Producer, log zerolog.Logger) (*BulkHandler, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	return &BulkHandler{&bulks{q: q, tasks: &tasks{q: q, s: producer.NewSchedules(p, nil)}}, log}, nil
}

// Handle does page after page of a bulk action. A run whose claim is void does nothing. When ctx ends, the next run goes on.
func (h *BulkHandler) Handle(ctx context.Context, t *task.Task) error {
	b, ok, err := h.bulks.q.ClaimBulk(ctx, t)
	if err != nil || !ok {
		return err
	}
	if err := h.bulks.work(ctx, &b); err != nil {
		h.log.Warn().Err(err).Str("bulk", b.ID).Msg("a bulk action failed")
	}
	if b.Open() {
		return context.Cause(ctx)
	}
	return nil
}

// work does page after page, and notes after each how far it is. It returns the error with which the bulk action failed.
func (b *bulks) work(ctx context.Context, x *queue.Bulk) error {
	for tries, wait := 0, bulkPause; ; wait = min(2*wait, bulkPauses) {
		before := x.Changed
		err := b.page(ctx, x)
		if tries++; err == nil || x.Changed > before {
			tries, wait = 0, bulkPause
		}
		failed := err != nil && (!store.Retryable(err) && ctx.Err() == nil || tries == bulkTries)
		if failed {
			x.State, x.Said = queue.BulkFailed, wording.WithHint(Brief(err), Hint(err))
		}
		switch {
		case !b.note(ctx, x):
			return nil
		case failed:
			return err
		case x.State != queue.BulkRunning:
			return nil
		case err != nil:
			pause(ctx, wait)
		}
	}
}

// page does one page. If the page fails, the next try meets the tasks that are left, so page counts only those that it changed. When ctx
// ends, the page that is under way has a moment to finish: the tasks of a page that is cut off would be met twice.
func (b *bulks) page(ctx context.Context, x *queue.Bulk) error {
	filter, err := filterOf(x)
	if err != nil {
		return err
	}
	bound, done := context.WithTimeout(context.WithoutCancel(ctx), bulkPage)
	defer done()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(bulkLeave, done) })()
	page, err := b.tasks.Bulk(By(bound, x.By), Bulk{Action: Action(x.Action), Filter: filter, After: x.Cursor, Reason: x.Reason})
	x.Changed += page.Changed
	if err != nil {
		x.Matched += page.Changed
		x.Short = x.Short || errors.Is(err, task.ErrUnreachable) // it may have changed tasks
		return err
	}
	x.Matched, x.Unreadable, x.Cursor = x.Matched+page.Matched, x.Unreadable+page.Unreadable, page.Next
	if x.Cursor == "" {
		x.State = queue.BulkDone
	}
	return nil
}

// note notes how far the bulk action is, until Redis has it. When ctx has ended it tries once, and leaves the rest to another worker. It
// reports whether it is noted: not if another has it.
func (b *bulks) note(ctx context.Context, x *queue.Bulk) bool {
	for wait := bulkPause; ; wait = min(2*wait, bulkPauses) {
		leaves := ctx.Err() != nil
		if leaves && x.State == queue.BulkRunning {
			x.State = queue.BulkWaiting
		}
		bound, done := context.WithTimeout(context.WithoutCancel(ctx), bulkNote)
		held, err := b.q.NoteBulk(bound, x)
		done()
		if err == nil {
			return held
		}
		if leaves {
			x.State = queue.BulkWaiting
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
