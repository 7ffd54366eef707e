package admin_test

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/task"
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
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	a := d.Admin()
	if _, err := a.Tasks.Enqueue(ctx, []*task.Task{task.New("invoice.send", nil, task.ID("inv-42"), task.In(time.Hour))}); err != nil {
		panic(err)
	}
	planned, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskPlanned}})
	if err != nil {
		panic(err)
	}
	fmt.Println(planned.Items[0].ID, planned.Items[0].Type)
	was, err := a.Tasks.Cancel(ctx, "inv-42")
	fmt.Println(was, err)
	// Output:
	// inv-42 invoice.send
	// planned <nil>
}
