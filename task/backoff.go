package task

import (
	"math/rand/v2"
	"time"
)

// Backoff spaces the attempts of a failing task: exponential, with full jitter, capped. The zero value doubles from one
// second up to an hour.
type Backoff struct {
	// Base is the longest delay after the first failure; it doubles with each further failure. Default 1s.
	Base time.Duration
	// Cap bounds every delay. Default 1h.
	Cap time.Duration
}

// Bounds returns the base and the cap, with defaults filled in.
func (b Backoff) Bounds() (base, limit time.Duration) {
	base, limit = b.Base, b.Cap
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = max(time.Hour, base)
	}
	return base, max(limit, time.Millisecond)
}

// Ceiling returns the longest delay after the given number of failures (from 1). It never overflows: after hundreds of
// failures it is the cap.
func (b Backoff) Ceiling(failures int) time.Duration {
	d, limit := b.Bounds()
	for i := 1; i < failures && d < limit; i++ {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

// Delay picks a random delay between one millisecond and the ceiling ("full jitter": many tasks that failed together do not
// come back together; AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
func (b Backoff) Delay(failures int) time.Duration {
	ms := b.Ceiling(failures).Milliseconds()
	if ms <= 1 {
		return time.Millisecond
	}
	return time.Duration(1+rand.Int64N(ms)) * time.Millisecond
}
