package onbeat_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type Invoice struct {
	Number string `json:"number"`
}

type Report struct {
	Day string `json:"day"`
}

func Example() {
	// A Redis for the example; yours is a redis.NewClient.
	server, err := embedded.Start(context.Background(), embedded.Options{InProcess: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	opts, _ := redis.ParseURL(server.URL())
	rdb := redis.NewClient(opts)
	defer rdb.Close()

	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "billing", Release: "v42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	_ = d.Handle("invoice.send", handlers.Typed(func(_ context.Context, inv Invoice) error {
		fmt.Println("sent", inv.Number)
		stop()
		return nil
	}))
	_ = d.Handle("report.build", handlers.Typed(func(_ context.Context, r Report) error {
		fmt.Println("built the report of", r.Day)
		return nil
	}))
	seoul, _ := time.LoadLocation("Asia/Seoul")
	_ = d.Schedule("nightly-report", schedule.Cron("0 2 * * *", seoul), "report.build", Report{Day: "yesterday"})

	_, err = d.Enqueue(ctx, task.New("invoice.send", Invoice{Number: "inv-42"}), task.In(10*time.Millisecond), task.Unique("inv-42", time.Hour))
	fmt.Println("enqueued:", err)
	_, err = d.Enqueue(ctx, task.New("invoice.send", Invoice{Number: "inv-42"}), task.Unique("inv-42", time.Hour))
	fmt.Println("enqueued again:", err != nil)
	fmt.Println("ran:", d.Run(ctx)) // until ctx ends; then resigns, drains, returns
	// Output:
	// enqueued: <nil>
	// enqueued again: true
	// sent inv-42
	// ran: <nil>
}
