// Command first-job runs one handler on one schedule.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
)

// Page is the payload of warm.
type Page struct {
	URL string `json:"url"`
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
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "shop", Release: "v42"})
	if err != nil {
		return err
	}
	d.Handle("warm", handlers.Typed(func(ctx context.Context, p Page) error {
		fmt.Println("warming", p.URL)
		return nil
	}))
	d.Schedule("warm-home", schedule.Every(time.Second), "warm", Page{URL: "https://shop.example/"})
	return d.Run(ctx) // until ctx ends; it also returns the errors of Handle and Schedule
}
