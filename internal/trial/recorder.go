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
	ID, Schedule, Release string
	Slot, At              time.Time
	Attempt               int
}

// Recorder is an HTTP server on 127.0.0.1 that notes every request, and when it came.
type Recorder struct {
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex
	list []Arrival
}

// NewRecorder starts one. Close it.
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

// URL is where a path of it is.
func (r *Recorder) URL(path string) string {
	return "http://" + r.listener.Addr().String() + "/" + path
}

// Close ends it. What it noted stays.
func (r *Recorder) Close() { _ = r.server.Close() }

// ServeHTTP notes the time first.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := Arrival{
		At: time.Now(), ID: req.Header.Get("Onbeat-Task-Id"),
		Schedule: req.Header.Get("Onbeat-Schedule"), Release: req.Header.Get("Onbeat-Release"),
	}
	a.Slot, _ = time.Parse(time.RFC3339Nano, req.Header.Get("Onbeat-Slot"))
	a.Attempt, _ = strconv.Atoi(req.Header.Get("Onbeat-Attempt"))
	_, _ = io.Copy(io.Discard, req.Body)
	r.Note(a)
	w.WriteHeader(http.StatusNoContent)
}

// Note adds an arrival.
func (r *Recorder) Note(list ...Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, list...)
}

// Arrivals is what came so far.
func (r *Recorder) Arrivals() []Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Count is how much came so far.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}
