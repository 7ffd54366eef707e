package instance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// Attend calls once a term, also if the call ended early, and a call that is slow to return keeps the instance from nothing.
func TestAttend_isCalledOncePerTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		s := r.node(Config{ID: "a"}).session()
		steps := make(chan string, 100)
		returned := make(chan struct{})
		var early atomic.Bool
		early.Store(true)
		go func() {
			defer close(returned)
			s.Attend(func(ctx context.Context) {
				steps <- "begins"
				if early.Load() {
					return
				}
				<-ctx.Done()
				steps <- "ends"
			})
		}()
		wait(t, steps, "first term")
		time.Sleep(time.Minute)
		if n := len(steps); n > 0 {
			t.Fatalf("called %d times more in one term", n)
		}
		early.Store(false)
		r.leave(r.up("b", "")) // a leads again at once
		wait(t, steps, "second term")
		for range 3 {
			r.leave(r.up("b", ""))
			if got := wait(t, steps, "end of the term"); got != "ends" {
				t.Fatalf("%q", got)
			}
			if got := wait(t, steps, "next term"); got != "begins" {
				t.Fatalf("%q", got)
			}
			if s.serving.Load() {
				t.Error("it counts as a leader that has not returned")
			}
		}
		s.resign()
		if got := wait(t, steps, "end of the last term"); got != "ends" {
			t.Fatalf("%q", got)
		}
		s.drain()
		wait(t, returned, "return of Attend")
		s.end(ErrLeft)
	})
}
