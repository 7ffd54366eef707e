package integration

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// arrival is one request as it came in.
type arrival struct {
	id, schedule, release, instance string
	slot, at                        time.Time
	attempt                         int
	fence                           int64
}

// recorder logs every request that reaches it.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []arrival
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP notes the time first. A request to /slow?for=D answers after D, or when the caller goes away.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := arrival{at: time.Now(), id: req.Header.Get("Onbeat-Task-Id"), schedule: req.Header.Get("Onbeat-Schedule"),
		release: req.Header.Get("Onbeat-Release"), instance: req.Header.Get("Onbeat-Instance")}
	a.slot, _ = time.Parse(time.RFC3339Nano, req.Header.Get("Onbeat-Slot"))
	a.attempt, _ = strconv.Atoi(req.Header.Get("Onbeat-Attempt"))
	a.fence, _ = strconv.ParseInt(req.Header.Get("Onbeat-Fence"), 10, 64)
	_, _ = io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.arrivals = append(r.arrivals, a)
	r.mu.Unlock()
	if d, err := time.ParseDuration(req.URL.Query().Get("for")); err == nil {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// all is what arrived so far.
func (r *recorder) all() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrivals)
}

// of is what arrived of one schedule.
func (r *recorder) of(schedule string) []arrival {
	return slices.DeleteFunc(r.all(), func(a arrival) bool { return a.schedule != schedule })
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// bySlot groups the arrivals of one schedule, and fails the test for one that came early.
func bySlot(t *testing.T, list []arrival) map[int64][]arrival {
	t.Helper()
	slots := map[int64][]arrival{}
	for _, a := range list {
		if a.at.Before(a.slot) {
			t.Errorf("%s arrived %s before its slot", a.id, a.slot.Sub(a.at))
		}
		slots[a.slot.UnixMilli()] = append(slots[a.slot.UnixMilli()], a)
	}
	return slots
}

// wantEverySlot fails unless every slot between the first and the last that arrived did arrive, on one grid, exactly
// once. A run that was repeated because an instance was lost says so by its attempt, and is allowed if retries is.
func wantEverySlot(t *testing.T, name string, list []arrival, every time.Duration, retries bool) {
	t.Helper()
	if len(list) == 0 {
		t.Errorf("%s: nothing arrived", name)
		return
	}
	slots := bySlot(t, list)
	times := slices.Sorted(maps.Keys(slots))
	for i, ms := range times {
		if i > 0 && ms-times[i-1] != every.Milliseconds() {
			t.Errorf("%s: %d ms between slots %d and %d, want %d", name, ms-times[i-1], times[i-1], ms, every.Milliseconds())
		}
		if again := slots[ms]; len(again) > 1 && !(retries && distinctAttempts(again)) {
			t.Errorf("%s: slot %d arrived %d times: %s", name, ms, len(again), describe(again))
		}
	}
}

func distinctAttempts(list []arrival) bool {
	seen := map[int]bool{}
	for _, a := range list {
		if seen[a.attempt] {
			return false
		}
		seen[a.attempt] = true
	}
	return true
}

func describe(list []arrival) string {
	s := ""
	for _, a := range list {
		s += fmt.Sprintf("[attempt %d, release %s, at %s] ", a.attempt, a.release, a.at.Format("05.000"))
	}
	return s
}

// lags are the times from slot to arrival, sorted.
func lags(list []arrival) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, a := range list {
		out[i] = a.at.Sub(a.slot)
	}
	slices.Sort(out)
	return out
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]
}
