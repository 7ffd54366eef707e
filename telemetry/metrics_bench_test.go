package telemetry_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/telemetry"
)

// BenchmarkScrape gathers all metrics while many tasks wait in 10 queues: as many as ONBEAT_TEST_SCRAPE says, or 10,000.
//
//	ONBEAT_TEST_SCRAPE=1000000 go test -run - -bench Scrape ./telemetry
func BenchmarkScrape(b *testing.B) {
	tasks, _ := strconv.Atoi(os.Getenv("ONBEAT_TEST_SCRAPE"))
	if tasks <= 0 {
		tasks = 10_000
	}
	w := newWorld(b, testredis.Private(b).Client(), telemetry.Options{})
	for from := 0; from < tasks; from += 10_000 {
		list := make([]*task.Task, min(10_000, tasks-from))
		for i := range list {
			list[i] = task.New("job", nil, task.Queue(fmt.Sprintf("q%d", i%10)), task.In(time.Duration(i%7200)*time.Second))
		}
		_, err := w.EnqueueAll(b.Context(), list)
		w.must(err)
	}
	w.scrape()
	b.ResetTimer()
	for b.Loop() {
		w.scrape()
	}
	b.ReportMetric(float64(tasks), "tasks")
}
