package store

import "context"

// Within calls fn on another goroutine, and stops waiting for it when ctx ends. (By default a go-redis client does not look
// at the context while it waits for a reply.) Fn may return later, and its result is dropped, so it must not change
// anything that the caller uses.
func Within[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	results := make(chan result, 1)
	go func() {
		v, err := fn()
		results <- result{v, err}
	}()
	select {
	case r := <-results:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, Classify(ctx.Err())
	}
}
