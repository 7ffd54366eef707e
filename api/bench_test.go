package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/telemetry"
)

// BenchmarkAPI asks for what people look at while many tasks wait: as many millions as ONBEAT_TEST_MILLIONS says, or 10,000 tasks.
// They are in 10 queues, of 10 types, one of a hundred with one of 1,000 keys. One task alone is of the queue, the type and the
// key "rare", and is found last.
//
//	ONBEAT_TEST_MILLIONS=5 go test -run - -bench API -timeout 30m ./api
func BenchmarkAPI(b *testing.B) {
	tasks := 10_000
	if millions, _ := strconv.Atoi(os.Getenv("ONBEAT_TEST_MILLIONS")); millions > 0 {
		tasks = millions * 1_000_000
	}
	rdb, ns := testredis.Private(b).Client(), testredis.Namespace(b)
	registry, metrics, err := telemetry.NewRegistry(telemetry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Observer: metrics})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, d, tasks)
	s, err := api.New(d.Admin(), api.Config{Metrics: telemetry.Handler(registry)})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	defer s.Close()

	for name, path := range map[string]string{
		"first page": "/v1/tasks", "page of 1000": "/v1/tasks?limit=1000", "state waiting": "/v1/tasks?state=waiting", "state dead": "/v1/tasks?state=dead",
		"queue": "/v1/tasks?queue=q3", "rare queue": "/v1/tasks?queue=rare", "type": "/v1/tasks?type=t3", "rare type": "/v1/tasks?type=rare",
		"key": "/v1/tasks?key=k3", "rare key": "/v1/tasks?key=rare", "schedule": "/v1/tasks?schedule=nightly",
		"task": "/v1/tasks/rare", "counts": "/v1/counts", "metrics": "/metrics",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				get(b, server.URL+path)
			}
		})
	}
	b.Run("deep page", func(b *testing.B) {
		after := deep(b, server.URL)
		for b.Loop() {
			get(b, server.URL+"/v1/tasks?after="+url.QueryEscape(after))
		}
	})
}

// fill adds tasks, of the next two hours.
func fill(b *testing.B, d *onbeat.Dispatcher, tasks int) {
	b.Helper()
	for from := 0; from < tasks; from += 10_000 {
		list := make([]*task.Task, min(10_000, tasks-from))
		for i := range list {
			n := from + i
			list[i] = task.New(fmt.Sprintf("t%d", n/10%10), nil, task.Queue(fmt.Sprintf("q%d", n%10)), task.In(time.Hour+time.Duration(n%7200)*time.Second))
			if n%100 == 0 {
				list[i].Key = fmt.Sprintf("k%d", n/100%1000)
			}
		}
		if _, err := d.EnqueueAll(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	rare := task.New("rare", nil, task.ID("rare"), task.Queue("rare"), task.In(2*time.Hour))
	rare.Key = "rare"
	if _, err := d.Enqueue(b.Context(), rare); err != nil {
		b.Fatal(err)
	}
}

func get(b *testing.B, url string) []byte {
	b.Helper()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d %s %v", url, resp.StatusCode, text, err)
	}
	return text
}

// next returns the cursor behind a page.
func next(b *testing.B, url string) string {
	b.Helper()
	var page struct{ Next string }
	if err := json.Unmarshal(get(b, url), &page); err != nil {
		b.Fatal(err)
	}
	return page.Next
}

// deep returns the cursor behind a hundred pages of 1,000.
func deep(b *testing.B, base string) (after string) {
	b.Helper()
	for range 100 {
		behind := next(b, base+"/v1/tasks?limit=1000&after="+url.QueryEscape(after))
		if behind == "" {
			break
		}
		after = behind
	}
	return after
}
