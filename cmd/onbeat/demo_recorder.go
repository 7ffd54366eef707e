package main

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// demoArrival is one run of the demo's job, as its receiver saw it.
type demoArrival struct {
	id, release string
	slot, at    time.Time
	attempt     int
}

// demoRecorder is the receiver: it notes every request, and when it came.
type demoRecorder struct {
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex
	list []demoArrival
}

func newDemoRecorder() (*demoRecorder, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &demoRecorder{listener: ln}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(ln) }() // ends with close
	return r, nil
}

func (r *demoRecorder) url() string {
	return "http://" + r.listener.Addr().String() + "/" + demoSchedule
}

func (r *demoRecorder) close() { _ = r.server.Close() }

// ServeHTTP notes the time first.
func (r *demoRecorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := demoArrival{at: time.Now(), id: req.Header.Get("Onbeat-Task-Id"), release: req.Header.Get("Onbeat-Release")}
	a.slot, _ = time.Parse(time.RFC3339Nano, req.Header.Get("Onbeat-Slot"))
	a.attempt, _ = strconv.Atoi(req.Header.Get("Onbeat-Attempt"))
	_, _ = io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.list = append(r.list, a)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// arrivals is what came so far.
func (r *demoRecorder) arrivals() []demoArrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}
