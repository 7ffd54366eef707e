// Package billing sends invoices.
package billing

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Invoice is the payload of invoice.send.
type Invoice struct {
	Number string `json:"number"`
}

// sendInvoice is the handler of invoice.send.
func sendInvoice(ctx context.Context, inv Invoice) error {
	switch run := handlers.FromContext(ctx); {
	case inv.Number == "":
		return handlers.Dead(errors.New("an invoice without a number")) // no retry helps
	case run.Attempt == 1: // a real one asks the mail server
		return handlers.RetryAfter(errors.New("the mail server is busy"), time.Minute)
	}
	return nil
}

// Run runs an instance until ctx ends. Then it resigns, drains and returns.
func Run(ctx context.Context, version string) error {
	rdb, err := onbeat.Dial("redis://127.0.0.1:6379/0")
	if err != nil {
		return err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "billing", Release: version})
	if err != nil {
		return err
	}
	d.Handle("invoice.send", handlers.Typed(sendInvoice))
	d.Schedule("warm-up", schedule.Every(time.Minute), "invoice.send", Invoice{Number: "test"})
	_, err = d.Enqueue(ctx, task.New("invoice.send", Invoice{Number: "inv-42"}), task.In(10*time.Minute), task.Unique("inv-42", time.Hour))
	if err != nil && !errors.Is(err, task.ErrDuplicate) {
		return err
	}
	return d.Run(ctx) // also returns the errors of Handle and Schedule
}
