// Command typed sends invoices: handlers whose payload has a type, tasks, and retries that the handler spaces.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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
		return handlers.RetryAfter(errors.New("the mail server is busy"), time.Second)
	}
	fmt.Println("sent", inv.Number)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb, err := onbeat.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "billing", Release: os.Getenv("RELEASE")})
	if err != nil {
		return err
	}
	d.Handle("invoice.send", handlers.Typed(sendInvoice))
	d.Schedule("warm-up", schedule.Every(time.Minute), "invoice.send", Invoice{Number: "test"})
	_, err = d.Enqueue(ctx, task.New("invoice.send", Invoice{Number: "inv-42"}), task.Unique("inv-42", time.Hour))
	switch {
	case errors.Is(err, task.ErrDuplicate):
		fmt.Println("inv-42 was enqueued before")
	case err != nil:
		return err
	}
	return d.Run(ctx) // also returns the errors of Handle and Schedule
}
