package consumer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// An instance, a scheduler that opens the gate while it leads, and a consumer: each is made with a client and a namespace.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	add, err := producer.New(rdb, "shop", producer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	leader, err := producer.NewScheduler(rdb, "shop", producer.SchedulerConfig{})
	if err != nil {
		log.Fatal(err)
	}
	node, err := instance.New(rdb, "shop", instance.Config{ID: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	mux := handlers.NewMux()
	err = mux.Handle("greet", handlers.Typed(func(_ context.Context, name string) error {
		fmt.Println("hello,", name)
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	work, err := consumer.New(rdb, "shop", mux, consumer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := add.Enqueue(ctx, task.New("greet", "ann")); err != nil {
		log.Fatal(err)
	}
	err = node.Run(ctx, func(s *instance.Session) error {
		scheduled := make(chan error, 1)
		go func() { scheduled <- leader.Run(s) }()
		if err := work.Run(s); err != nil {
			return err
		}
		return <-scheduled
	})
	fmt.Println("left:", err)
	// Output:
	// hello, ann
	// left: <nil>
}

func ExampleConfig_Validate() {
	fmt.Println(consumer.Config{Queues: map[string]int{"mail": 3, "reports": 1}, Strict: true}.Validate())
	fmt.Println(consumer.Config{Limits: map[string]int{"report.build": 0}}.Validate())
	// Output:
	// <nil>
	// limits.report.build "0": out of range (1 or more)
}
