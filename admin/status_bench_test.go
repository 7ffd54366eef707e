package admin_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// BenchmarkStatus is the status of 10,000 schedules and of as many tasks as ONBEAT_TEST_TASKS says (10,000):
//
//	ONBEAT_TEST_TASKS=1000000 go test -run - -bench Status -benchtime 10x ./admin
func BenchmarkStatus(b *testing.B) {
	tasks := 10_000
	if n, err := strconv.Atoi(os.Getenv("ONBEAT_TEST_TASKS")); err == nil {
		tasks = n
	}
	rdb := testredis.Private(b).Client()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "bench", Release: "v1", Concurrency: 10})
	if err != nil {
		b.Fatal(err)
	}
	list := make([]onbeat.Schedule, 10_000)
	for i := range list {
		list[i] = onbeat.Schedule{Name: fmt.Sprint("s", i), Rule: schedule.Every(time.Hour), Task: "job", Elsewhere: true}
	}
	if err := d.Declare(list); err != nil {
		b.Fatal(err)
	}
	for left := tasks; left > 0; left -= 10_000 {
		list := make([]*task.Task, min(left, 10_000))
		for i := range list {
			list[i] = task.New("later", nil, task.In(time.Hour))
		}
		if _, err := d.EnqueueAll(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	a := d.Admin()
	testredis.Eventually(b, time.Minute, func() bool {
		s, err := a.Activity.Status(ctx)
		return err == nil && s.Counts.Schedules == 10_000
	}, "all are declared")
	before := calls(b, rdb)
	for b.Loop() {
		if _, err := a.Activity.Status(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(calls(b, rdb)-before)/float64(b.N), "commands/op")
}

// calls is how many commands Redis has processed.
func calls(b *testing.B, rdb *redis.Client) int64 {
	b.Helper()
	info, err := rdb.InfoMap(b.Context(), "stats").Result()
	if err != nil {
		b.Fatal(err)
	}
	n, _ := strconv.ParseInt(info["Stats"]["total_commands_processed"], 10, 64)
	return n
}
