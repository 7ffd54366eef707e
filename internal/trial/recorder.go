package trial

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Arrival is one run, as its receiver saw it.
type Arrival struct {
	ID, Schedule, Instance, Release string
	Slot, At                        time.Time
	Attempt                         int
	Fence                           int64

	// Ended is when the request was answered, or its caller gave up. It is zero until then.
	Ended   time.Time
	GivenUp bool
}

// Recorder is an HTTP server on 127.0.0.1 that records every request, and when it came.
type Recorder struct {
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex
	list []Arrival
}

// NewRecorder starts a recorder. The caller closes it.
func NewRecorder() (*Recorder, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Recorder{listener: ln}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(ln) }() // ends with Close
	return r, nil
}

// URL returns the URL of a path on the recorder.
func (r *Recorder) URL(path string) string {
	return "http://" + r.listener.Addr().String() + "/" + path
}

// Close stops the server. The records stay.
func (r *Recorder) Close() { _ = r.server.Close() }

// ServeHTTP records the time first. It answers a request to ?for=D after D, or returns when the caller goes away.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := Arrival{
		At: time.Now(), ID: req.Header.Get("Onbeat-Task-Id"),
		Schedule: req.Header.Get("Onbeat-Schedule"),
		Instance: req.Header.Get("Onbeat-Instance"), Release: req.Header.Get("Onbeat-Release"),
	}
	a.Slot, _ = time.Parse(time.RFC3339Nano, req.Header.Get("Onbeat-Slot"))
	a.Attempt, _ = strconv.Atoi(req.Header.Get("Onbeat-Attempt"))
	a.Fence, _ = strconv.ParseInt(req.Header.Get("Onbeat-Fence"), 10, 64)
	_, _ = io.Copy(io.Discard, req.Body)
	at := r.note(a)
	if d, err := time.ParseDuration(req.URL.Query().Get("for")); err == nil {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
			a.GivenUp = true
		}
	}
	r.mu.Lock()
	r.list[at].Ended, r.list[at].GivenUp = time.Now(), a.GivenUp
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Note adds arrivals.
func (r *Recorder) Note(list ...Arrival) {
	for _, a := range list {
		r.note(a)
	}
}

// note adds one arrival, and returns its index.
func (r *Recorder) note(a Arrival) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
	return len(r.list) - 1
}

// Arrivals returns all arrivals so far.
func (r *Recorder) Arrivals() []Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Count returns how many arrivals there are so far.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}
