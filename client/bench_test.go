package client_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/client"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// BenchmarkEnqueue adds tasks over HTTP and, beside that, with the producer itself, on the same Redis: 1,000 a call, and one a
// call from 16 callers.
func BenchmarkEnqueue(b *testing.B) {
	d, err := onbeat.New(testredis.Real(b), onbeat.Config{Namespace: testredis.Namespace(b)})
	if err != nil {
		b.Fatal(err)
	}
	s, err := api.New(d.Admin(), api.Config{})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	defer s.Close()
	over, err := client.New(server.URL, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, a := range map[string]*admin.Admin{"direct": d.Admin(), "http": over} {
		b.Run("batch1000/"+name, func(b *testing.B) {
			for b.Loop() {
				add(b, a, 1000)
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
		b.Run("one16/"+name, func(b *testing.B) {
			b.SetParallelism(8) // on two processors
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					add(b, a, 1)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func add(b *testing.B, a *admin.Admin, n int) {
	b.Helper()
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = task.New("mail.send", map[string]string{"to": "ann@example.com"}, task.In(time.Hour))
	}
	if _, err := a.Tasks.Enqueue(b.Context(), list); err != nil {
		b.Error(err)
	}
}
