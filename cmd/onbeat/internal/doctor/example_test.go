package doctor_test

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/embedded"
)

func Example() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{InProcess: true})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb, err := onbeat.Dial(server.URL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	report, err := doctor.Examine(ctx, doctor.Config{
		Redis: rdb, URL: server.URL(), Ping: func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
	})
	if err != nil {
		panic(err)
	}
	for _, c := range report.Checks {
		if c.Name == "writes" {
			fmt.Println(c.State, c.Detail)
		}
	}
	// Output: ok Redis accepts them
}
