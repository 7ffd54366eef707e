package handlers_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// The cost of a request of the http handler, beside the same request by a bare client, and beside the least that a bare client can
// send. The receiver is in the same process, so its cost is in all three.
func BenchmarkHTTP(b *testing.B) {
	s := serve(b, status(http.StatusNoContent))
	const body = `{"n":1}`
	b.Run("bare", func(b *testing.B) {
		c := newClient(b)
		each(b, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
			return do(c, req, err)
		})
	})
	b.Run("bare, the same request", func(b *testing.B) {
		c := newClient(b)
		each(b, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
			if err == nil {
				for k, v := range map[string]string{
					"Authorization": "Bearer x", "Content-Type": "application/json", "User-Agent": "onbeat/v42",
					"Onbeat-Task-Id": "warm-cache@1700000000000", "Onbeat-Schedule": "warm-cache", "Onbeat-Slot": "2023-11-14T22:13:20.000000000Z",
					"Onbeat-Attempt": "1", "Onbeat-Instance": "0197", "Onbeat-Release": "v42", "Onbeat-Fence": "1",
					"Traceparent": "00-00112233445566778899aabbccddeeff-0011223344556677-01",
				} {
					req.Header.Set(k, v)
				}
			}
			return do(c, req, err)
		})
	})
	b.Run("handler", func(b *testing.B) {
		h := newHTTP(b, handlers.HTTPConfig{})
		x := &task.Task{ID: "warm-cache@1700000000000", Schedule: "warm-cache", Slot: time.UnixMilli(1700000000000), Instance: "0197", Release: "v42",
			Payload: payload("url", s.URL, "headers", map[string]string{"Authorization": "Bearer x"}, "body", map[string]int{"n": 1})}
		each(b, func(ctx context.Context) error { return h.Handle(ctx, x) })
	})
}

// How long after a moment the requests of 50 runs that begin at it arrive, without a dispatcher: over connections that are there,
// over new ones, and by a bare client.
func BenchmarkHTTP_burst(b *testing.B) {
	var at sync.Map // when each request arrived
	s := serve(b, func(w http.ResponseWriter, r *http.Request) {
		at.Store(r.Header.Get("Onbeat-Task-Id"), time.Now())
		w.WriteHeader(http.StatusNoContent)
	})
	h := newHTTP(b, handlers.HTTPConfig{})
	body := payload("url", s.URL, "body", map[string]int{"n": 1})
	byHandler := func(ctx context.Context, id string) error { return h.Handle(ctx, &task.Task{ID: id, Payload: body}) }
	c := newClient(b)
	burst := func(b *testing.B, before func(), run func(context.Context, string) error) {
		var took []time.Duration
		for b.Loop() {
			before()
			at.Clear()
			var wg sync.WaitGroup
			start := time.Now()
			for i := range 50 {
				wg.Go(func() {
					if err := run(b.Context(), string(rune('A'+i))); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			at.Range(func(_, arrived any) bool { took = append(took, arrived.(time.Time).Sub(start)); return true })
		}
		slices.Sort(took)
		for name, q := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
			b.ReportMetric(float64(took[len(took)*q/100].Microseconds())/1000, name)
		}
	}
	b.Run("bare", func(b *testing.B) {
		burst(b, func() {}, func(ctx context.Context, id string) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(`{"n":1}`))
			if err == nil {
				req.Header.Set("Onbeat-Task-Id", id)
			}
			return do(c, req, err)
		})
	})
	b.Run("handler", func(b *testing.B) { burst(b, func() {}, byHandler) })
	b.Run("handler, new connections", func(b *testing.B) { burst(b, func() { _ = h.(io.Closer).Close() }, byHandler) })
}

func newClient(b *testing.B) *http.Client {
	b.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 512
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func do(c *http.Client, req *http.Request, err error) error {
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Body.Close()
}

func each(b *testing.B, run func(context.Context) error) {
	b.ReportAllocs()
	for b.Loop() {
		if err := run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
