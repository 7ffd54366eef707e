package store_test

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestMs(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(5).UTC()
	same(t, "no time", store.Ms(time.Time{}), 0)
	same(t, "no time", store.FromMs(0), time.Time{})
	same(t, "a time", store.FromMs(store.Ms(at)), at)
}

func TestClock(t *testing.T) {
	t.Parallel()
	var c store.Clock
	if d := time.Until(c.Local(time.Now().Add(time.Hour))); d < 59*time.Minute || d > time.Hour {
		t.Errorf("the zero clock is off by %v", time.Hour-d)
	}
	if d := time.Since(c.Now()); d < 0 || d > time.Minute {
		t.Errorf("the zero clock is off by %v", d)
	}
	asked := time.Now()
	there := asked.Add(time.Hour) // a local clock an hour slow
	c.Set(asked, asked.Add(10*time.Millisecond), there)
	same(t, "local", c.Local(there.Add(time.Second)).Sub(asked), time.Second)
	if d := time.Until(c.Now()); d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("now is off by %v", d)
	}
}

// The clock goes by the fastest call, until another is as good or one of the two clocks was set.
func TestClock_goesByTheFastestCall(t *testing.T) {
	t.Parallel()
	start := time.Now()
	const hour, ms = time.Hour, time.Millisecond
	tests := []struct {
		name             string
		after, round, at time.Duration // of a second call: when, how long it took, when Redis read, by the first call's clock
		want             time.Duration // how much the clock is moved
	}{
		{"slower", time.Second, 5 * ms, time.Second + 4*ms, 0},
		{"faster", time.Second, ms, time.Second + ms, ms},
		{"as fast", time.Second, 2 * ms, time.Second - ms, -ms},
		{"slower, much later", time.Minute, 5 * ms, time.Minute + 4*ms, 4 * ms},
		{"set ahead", time.Second, 5 * ms, hour, hour - time.Second},
		{"set back", time.Second, 5 * ms, -hour, -hour - time.Second},
		{"set by a little more than both could be off", time.Second, 5 * ms, time.Second - 4*ms, -4 * ms},
	}
	for _, tt := range tests {
		var c store.Clock
		c.Set(start, start.Add(2*ms), start)
		asked := start.Add(tt.after)
		c.Set(asked, asked.Add(tt.round), start.Add(tt.at))
		same(t, tt.name, -c.Local(start).Sub(start), tt.want)
	}
}
