// Package report has a handler and its schedule, to show how they are tested.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Books are the source of the reports.
type Books interface {
	// Closed reports whether a day is closed.
	Closed(day time.Time) bool
}

var errOpen = errors.New("the books are still open")

// Register has a dispatcher make the report of the day before, each night at two.
func Register(d *onbeat.Dispatcher, books Books) error {
	return errors.Join(
		d.Handle("report", build(books)),
		d.Schedule("nightly", schedule.Cron("0 2 * * *", time.UTC), "report", nil),
	)
}

func build(books Books) handlers.TaskHandler {
	return handlers.Func(func(ctx context.Context, t *task.Task) error {
		day := t.Slot.AddDate(0, 0, -1)
		if !books.Closed(day) {
			return handlers.RetryAfter(errOpen, 10*time.Minute)
		}
		handlers.Output(ctx, fmt.Sprintf("report of %s, attempt %d", day.Format(time.DateOnly), t.Attempt))
		return nil
	})
}
