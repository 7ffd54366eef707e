package store

import "context"

// Within calls fn, and stops waiting for it when ctx ends: by default a client does not look at contexts while it waits
// for a reply. An fn that returns later is forgotten, so it must change nothing but what it returns.
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
