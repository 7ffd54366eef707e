package main

import (
	"context"
	"errors"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
)

// retryDead retries the first page of dead tasks, and pauses a schedule.
func retryDead(ctx context.Context, d *onbeat.Dispatcher) error {
	a, ctx := d.Admin(), admin.By(ctx, "ann@host") // events show the name
	page, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskDead, Type: "invoice.send"}})
	for _, dead := range page.Items {
		_, failed := a.Tasks.Retry(ctx, dead.ID, false) // false: with the present payload of its schedule, if it is a slot's
		err = errors.Join(err, failed)
	}
	_, paused := a.Schedules.Pause(ctx, "warm-up", "the cache moves") // false: it was paused already
	return errors.Join(err, paused)
}
