package instance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/task"
)

// A manager keeps an instance registered and calls serve for each registration. Work of the leader alone runs under
// Lead, whose context ends with the term.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	node, err := instance.New(rdb, "shop", instance.Config{ID: "web-1", Release: "v42"})
	if err != nil {
		log.Fatal(err)
	}

	defer server.Close()
	defer rdb.Close()

	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	err = node.Run(ctx, func(s *instance.Session) error {
		s.Lead(func(term context.Context, t task.Term) {
			fmt.Println(t.Instance, "leads")
			stop()
			<-term.Done()
			fmt.Println("the term ended:", context.Cause(term))
		})
		return nil
	})
	fmt.Println("left:", err)
	// Output:
	// web-1 leads
	// the term ended: the instance resigned
	// left: <nil>
}
