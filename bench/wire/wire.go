// Package wire is what the bench and the processes it measures say to each other: one JSON object a line, on the
// child's standard input and output.
//
// A child asks before and after each stretch that is measured, and goes on when it is told to. So the same code of the
// parent reads the server's counters for every peer, whatever language it is written in.
package wire

import (
	"slices"
	"strconv"
	"strings"
)

// Job is the first line a child reads: what to do.
type Job struct {
	Peer     string `json:"peer"`
	Scenario string `json:"scenario"`
	Params   Params `json:"params"`
	Run      int    `json:"run"`
	// Commit is the earlier one whose library is measured; empty: this tree's.
	Commit string `json:"commit,omitempty"`

	Redis    string `json:"redis,omitempty"`    // host:port of a server of its own
	Postgres string `json:"postgres,omitempty"` // URL of a database of its own
	Part     int    `json:"part,omitempty"`     // this process's number, from 0, of several
	Parts    int    `json:"parts,omitempty"`
	Profile  string `json:"profile,omitempty"` // folder for pprof files
}

// Title names the job, for the files it leaves.
func (j *Job) Title() string {
	w := &j.Params
	parts := []string{j.Scenario, j.Peer, j.Commit, w.Store, w.How}
	for _, n := range []int{w.Bytes, w.Concurrency, w.Servers, w.Rate, w.Backlog, w.Instances, w.Jobs, w.BeatMs, w.Schedules, w.Processes} {
		if n > 0 {
			parts = append(parts, strconv.Itoa(n))
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
}

// Params are what a run is made of. They are written beside its figures, so zero fields are left out.
type Params struct {
	Store       string `json:"store,omitempty"` // memory, aof (append-only, everysec) or postgres
	How         string `json:"how,omitempty"`   // S1: bulk or one
	Tasks       int    `json:"tasks,omitempty"`
	Bytes       int    `json:"payload_bytes,omitempty"`
	Callers     int    `json:"callers,omitempty"`     // goroutines that enqueue
	Batch       int    `json:"batch,omitempty"`       // tasks a call, of bulk methods
	Concurrency int    `json:"concurrency,omitempty"` // handlers at once, a server
	Servers     int    `json:"servers,omitempty"`     // servers in the process; callers, for raw
	Best        bool   `json:"best,omitempty"`        // concurrency and servers were found by a search
	Search      bool   `json:"search,omitempty"`      // a step of that search
	Tuned       bool   `json:"tuned,omitempty"`       // the peer's own settings for less delay
	Rate        int    `json:"rate,omitempty"`        // S3: tasks a second
	Seconds     int    `json:"seconds,omitempty"`
	Instances   int    `json:"instances,omitempty"` // S5
	LeaseMs     int    `json:"lease_ms,omitempty"`
	Backlog     int    `json:"backlog,omitempty"`   // S6: tasks of the far future
	Jobs        int    `json:"jobs,omitempty"`      // S4
	BeatMs      int    `json:"beat_ms,omitempty"`   // S4: between two slots, if not a second; S5: of the only schedule
	Schedules   int    `json:"schedules,omitempty"` // S7
	EveryS      int    `json:"every_s,omitempty"`   // S7
	Processes   int    `json:"processes,omitempty"` // S8
}

// Metrics are the figures of a run by name.
type Metrics map[string]float64

// Event is a line a child writes.
type Event struct {
	// Do is what the line is: begin and end (of a stretch; the child waits for an answer), handled (N so far, no
	// answer), done, or error.
	Do string `json:"do"`
	// Name tells several stretches of one run apart; their metrics get it as a prefix.
	Name string `json:"name,omitempty"`
	N    int    `json:"n,omitempty"`
	Text string `json:"text,omitempty"`

	// With end: what the stretch was, and what it cost the child.
	Tasks     int     `json:"tasks,omitempty"`
	Instances int     `json:"instances,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
	Client    *Client `json:"client,omitempty"`
	Metrics   Metrics `json:"metrics,omitempty"`
	// Handled is how often each task was handled, if only all processes together know whether that was once.
	Handled []byte `json:"handled,omitempty"`
}

// Client is what a stretch cost the child.
type Client struct {
	CPU    float64 `json:"cpu_us"`
	Allocs float64 `json:"allocs"` // negative: unknown
	Bytes  float64 `json:"bytes"`
	Calls  float64 `json:"calls"` // commands sent to Redis, those inside scripts not counted
	RSS    float64 `json:"rss_mb"`
}

// The lines a parent answers with.
const (
	Go   = "go"   // the stretch may begin; the counters were read
	Stop = "stop" // all tasks are handled
)
