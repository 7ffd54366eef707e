package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// A producer needs a client and a namespace. It adds tasks that any instance of the namespace runs.
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
	id, err := add.Enqueue(context.Background(), task.New("invoice.send", 42, task.ID("invoice-42")))
	fmt.Println(id, err)
	_, err = add.Enqueue(context.Background(), task.New("no spaces", nil))
	fmt.Println(errors.Is(err, task.ErrInvalid))
	// Output:
	// invoice-42 <nil>
	// true
}
