package simulation

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// retry asks for the newest hundred dead tasks to run again, with their attempts counted from zero.
func (w *world) retry(ctx context.Context) {
	page, err := w.queue.List(ctx, task.Dead, queue.ListOptions{})
	if err != nil {
		w.trace("list the dead: %v", err)
		return
	}
	var list []*task.Task
	began := map[*duty]int{} // how often each had begun
	var duties []*duty
	w.with(func() {
		for _, f := range page.Tasks {
			list = append(list, f.Task)
			d := w.book.tasks[f.Task.ID]
			if d != nil {
				d.counted = time.Now()
			}
			if d != nil && d.typ != "" && !d.forgiven && d.state != dutyRuns {
				d.gone, d.loose = "", "its call has not returned" // a caller may have cancelled it before it died
				duties, began[d] = append(duties, d), len(d.runs)
			}
		}
	})
	n, err := w.queue.Revive(ctx, list)
	w.with(func() {
		w.trace("retry: %d of %d dead tasks: %v", n, len(list), err)
		now := time.Now()
		if err != nil && now.After(w.calm) && !w.redis.brokeIdle(err) {
			w.blame("refused", "retry dead tasks: %v", err)
		}
		for _, d := range duties {
			if err != nil || n < len(list) { // it is not known which tasks are due again
				d.loose = "it may be due again"
				continue
			}
			if d.lost = 0; d.loose == "its call has not returned" {
				d.loose = ""
			}
			if len(d.runs) == began[d] {
				w.book.revive(d, now)
			}
		}
	})
}

// revive notes that a dead task is due again.
func (b *book) revive(d *duty, now time.Time) {
	d.due, d.revived = now, now
	if d.state != dutyWaits {
		d.state = dutyWaits
		b.waiting = append(b.waiting, d)
	}
}
