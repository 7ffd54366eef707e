package network

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

// arrival is one request as it came in, and when it ended: answered, or given up by its caller.
type arrival struct {
	id, schedule, release string
	slot, at, ended       time.Time
	attempt               int
	fence                 int64
	givenUp               bool
}

// recorder logs every request that reaches it. It knows nothing of onbeat but the headers of the http handler.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []*arrival
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP notes the time first. A request to ?for=D is answered after D, or when the caller goes away.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := &arrival{at: time.Now(), id: req.Header.Get("Onbeat-Task-Id"), schedule: req.Header.Get("Onbeat-Schedule"),
		release: req.Header.Get("Onbeat-Release")}
	a.slot, _ = time.Parse(time.RFC3339Nano, req.Header.Get("Onbeat-Slot"))
	a.attempt, _ = strconv.Atoi(req.Header.Get("Onbeat-Attempt"))
	a.fence, _ = strconv.ParseInt(req.Header.Get("Onbeat-Fence"), 10, 64)
	_, _ = io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.arrivals = append(r.arrivals, a)
	r.mu.Unlock()
	givenUp := false
	if d, err := time.ParseDuration(req.URL.Query().Get("for")); err == nil {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
			givenUp = true
		}
	}
	r.mu.Lock()
	a.ended, a.givenUp = time.Now(), givenUp
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// where is a copy of what arrived so far and is wanted.
func (r *recorder) where(want func(arrival) bool) (list []arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.arrivals {
		if want(*a) {
			list = append(list, *a)
		}
	}
	return list
}

func (r *recorder) of(schedule string) []arrival {
	return r.where(func(a arrival) bool { return a.schedule == schedule })
}

func (r *recorder) task(id string) []arrival {
	return r.where(func(a arrival) bool { return a.id == id })
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// judged is what the recorder says of a schedule.
type judged struct {
	slots, missed, duplicated, offGrid int

	// repeated is how many arrivals were later attempts, with a larger fence, of runs that were lost.
	repeated int

	// gap is the longest time between the first arrivals of two slots; p50, p99 and worst are of the time from a slot to
	// its first arrival.
	gap, p50, p99, worst time.Duration
}

// judge counts what became of the slots between the first and the last that arrived. Nothing may come early.
func judge(t *testing.T, list []arrival) (j judged) {
	t.Helper()
	slots := map[int64][]arrival{}
	for _, a := range list {
		if a.at.Before(a.slot) {
			t.Errorf("%s arrived %s before its slot", a.id, a.slot.Sub(a.at))
		}
		slots[a.slot.UnixMilli()] = append(slots[a.slot.UnixMilli()], a)
	}
	times := slices.Sorted(maps.Keys(slots))
	if len(times) == 0 {
		t.Error("nothing arrived")
		return j
	}
	step, first := every.Milliseconds(), times[0]
	j.slots, j.missed = len(times), int((times[len(times)-1]-first)/step)+1
	var lags []time.Duration
	var firsts []time.Time
	for _, ms := range times {
		if (ms-first)%step != 0 {
			j.offGrid++
		} else {
			j.missed--
		}
		runs := slots[ms]
		for k := 1; k < len(runs); k++ {
			if runs[k].attempt > runs[k-1].attempt && runs[k].fence > runs[k-1].fence {
				j.repeated++
			} else {
				j.duplicated++
			}
		}
		lags = append(lags, runs[0].at.Sub(runs[0].slot))
		firsts = append(firsts, runs[0].at)
	}
	slices.Sort(lags)
	slices.SortFunc(firsts, time.Time.Compare)
	for i := 1; i < len(firsts); i++ {
		j.gap = max(j.gap, firsts[i].Sub(firsts[i-1]))
	}
	j.p50, j.p99, j.worst = lags[len(lags)/2], lags[len(lags)*99/100], lags[len(lags)-1]
	return j
}

// cells are those of the table that integration/fleet_table_test.go begins.
func (j judged) cells() []string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	n := func(i int) string { return fmt.Sprint(i) }
	return []string{n(j.slots), n(j.missed), n(j.duplicated), n(j.offGrid), n(j.repeated), ms(j.gap), ms(j.p50), ms(j.p99)}
}
