package handlers_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// What a request of the http handler costs, beside the same request by a bare client, and beside the least that a bare client can
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

func newClient(b *testing.B) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
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
