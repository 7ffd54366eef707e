package task_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/task"
)

func TestBackoff_bounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want task.Backoff }{
		{task.Backoff{}, task.Backoff{Base: time.Second, Cap: time.Hour}},
		{task.Backoff{Base: 2 * time.Hour}, task.Backoff{Base: 2 * time.Hour, Cap: 2 * time.Hour}},
		{task.Backoff{Cap: time.Minute}, task.Backoff{Base: time.Second, Cap: time.Minute}},
		{task.Backoff{Base: -1, Cap: -1}, task.Backoff{Base: time.Second, Cap: time.Hour}},
		{task.Backoff{Base: 1, Cap: 1}, task.Backoff{Base: 1, Cap: time.Millisecond}},
		{task.Backoff{Base: time.Minute, Cap: time.Second}, task.Backoff{Base: time.Minute, Cap: time.Second}},
	} {
		if base, limit := c.in.Bounds(); base != c.want.Base || limit != c.want.Cap {
			t.Errorf("%+v: bounds %s, %s, want %+v", c.in, base, limit, c.want)
		}
	}
}

func TestBackoff_ceilingDoublesUpToTheCap(t *testing.T) {
	t.Parallel()
	b := task.Backoff{Base: 2 * time.Second, Cap: 11 * time.Second}
	for failures, want := range map[int]time.Duration{-1: 2 * time.Second, 0: 2 * time.Second, 1: 2 * time.Second, 2: 4 * time.Second,
		3: 8 * time.Second, 4: 11 * time.Second, 5: 11 * time.Second, math.MaxInt: 11 * time.Second} {
		if got := b.Ceiling(failures); got != want {
			t.Errorf("Ceiling(%d) = %s, want %s", failures, got, want)
		}
	}
}

func TestBackoff_staysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		span := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-5, 5), rapid.Int64Range(0, int64(time.Hour)), rapid.Just(int64(math.MaxInt64)))
		b := task.Backoff{Base: time.Duration(span.Draw(r, "base")), Cap: time.Duration(span.Draw(r, "cap"))}
		failures := rapid.IntRange(1, 10_000).Draw(r, "failures")
		_, limit := b.Bounds()
		ceiling, delay := b.Ceiling(failures), b.Delay(failures)
		if ceiling <= 0 || ceiling > limit {
			r.Fatalf("Ceiling(%d) = %s, cap %s", failures, ceiling, limit)
		}
		if delay <= 0 || delay > limit || delay > max(ceiling, time.Millisecond) {
			r.Fatalf("Delay(%d) = %s, ceiling %s, cap %s", failures, delay, ceiling, limit)
		}
		if next := b.Ceiling(failures + 1); next < ceiling {
			r.Fatalf("the ceiling falls from %s to %s", ceiling, next)
		}
	})
}

func TestBackoff_neverOverflows(t *testing.T) {
	t.Parallel()
	b := task.Backoff{Base: 3 * time.Millisecond, Cap: math.MaxInt64}
	last := time.Duration(0)
	for failures := 1; failures <= 10_000; failures++ {
		got := b.Ceiling(failures)
		if got < last || b.Delay(failures) <= 0 {
			t.Fatalf("Ceiling(%d) = %s after %s", failures, got, last)
		}
		last = got
	}
	if last != math.MaxInt64 {
		t.Fatalf("the last ceiling is %s", last)
	}
}

func TestBackoff_jitterSpansTheWholeRange(t *testing.T) {
	t.Parallel()
	const draws, tenths = 20_000, 10
	b := task.Backoff{Base: time.Second}
	var counts [tenths]int
	lo, hi := time.Hour, time.Duration(0)
	for range draws {
		d := b.Delay(1)
		lo, hi = min(lo, d), max(hi, d)
		counts[min(int(d*tenths/time.Second), tenths-1)]++
	}
	if lo > 10*time.Millisecond || hi < 990*time.Millisecond {
		t.Errorf("%d delays lie between %s and %s", draws, lo, hi)
	}
	for i, n := range counts { // 2000 expected; the deviation is 42
		if n < 1700 || n > 2300 {
			t.Errorf("tenth %d has %d of %d", i, n, draws)
		}
	}
}
