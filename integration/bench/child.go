package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// jobEnv is the variable that has the job of a process that is measured.
const jobEnv = "ONBEAT_BENCH_JOB"

// job is what a measured process does.
type job struct {
	Peer     string `json:"peer"`
	Scenario string `json:"scenario"`
	Params   params `json:"params"`
	Run      int    `json:"run"`
	Profile  string `json:"profile,omitempty"` // folder for profiles
	Redis    string `json:"redis,omitempty"`   // host:port of a server that is there; empty: start one
	Part     int    `json:"part,omitempty"`    // this process's number, from 0, of several
	Program  string `json:"program,omitempty"` // the onbeat program, for the scenarios of features
	Faktory  string `json:"faktory,omitempty"` // Faktory's program
	API      string `json:"api,omitempty"`     // the program's URL, for the process around it
}

// params are what a run is made of. They are written beside its figures, so zero fields are left out.
type params struct {
	Store       string `json:"store,omitempty"` // memory, aof (append-only, everysec) or postgres
	How         string `json:"how,omitempty"`   // S1: bulk or one
	Tasks       int    `json:"tasks,omitempty"`
	Bytes       int    `json:"payload_bytes,omitempty"`
	Callers     int    `json:"callers,omitempty"`     // goroutines that enqueue
	Batch       int    `json:"batch,omitempty"`       // tasks a call, of bulk methods
	Concurrency int    `json:"concurrency,omitempty"` // handlers at once, a server
	Servers     int    `json:"servers,omitempty"`     // servers in the process; callers, for raw
	Best        bool   `json:"best,omitempty"`        // a search found concurrency and servers
	Search      bool   `json:"search,omitempty"`      // a step of that search, in the figures of earlier commits
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
	Partitions  int    `json:"partitions,omitempty"`
	Feature     string `json:"feature,omitempty"` // F1 and F2: one of features
}

// metrics are the figures of a run by name.
type metrics map[string]float64

// server is what a peer works on.
type server interface {
	read(ctx context.Context) (used, error)
	stop()
}

// used is what a server has used so far.
type used struct {
	cpu      float64 // µs, user and system, all threads and children
	commands float64 // with those inside scripts; of PostgreSQL, transactions
	bytes    float64 // of data
}

// child is a process that is measured.
type child struct {
	job
	server  server
	metrics metrics
	err     error // of reading counters
}

// beMeasured does a job and prints its figures.
func beMeasured(ctx context.Context) (err error) {
	c := &child{metrics: metrics{}}
	if err := json.Unmarshal([]byte(os.Getenv(jobEnv)), &c.job); err != nil {
		return err
	}
	switch {
	case c.Scenario == watching:
		return watch(c.Redis)
	case c.Scenario == surrounding:
		return surround(ctx, &c.job)
	case c.Redis != "": // one of several
		return c.takePart(ctx)
	}
	switch c.Peer {
	case "river":
		c.server, err = startPostgres(ctx)
	case "faktory":
		c.server, err = startFaktory(ctx, c.Faktory)
	default:
		c.server, err = startRedis(ctx, &c.job)
	}
	if err != nil {
		return err
	}
	defer c.server.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the peer before its server
	c.Redis = c.address()
	switch {
	case c.Scenario == "S8":
		err = c.lead(ctx)
	case c.Peer == "bullmq":
		var out []byte
		if out, err = worker(ctx, &c.job).Output(); err == nil {
			err = json.Unmarshal(out, &c.metrics)
		}
	default:
		var p peer
		if p, err = openPeer(ctx, c); err == nil {
			err = scenarioOf(c.Scenario).run(ctx, c, p)
		}
	}
	if err = errors.Join(err, c.err); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(c.metrics)
}

// stretch is a piece of a run that is measured.
type stretch struct {
	c       *child
	calls   func() int64
	profile *os.File
	machine *reference

	began   time.Time
	cpu     time.Duration
	mem     runtime.MemStats
	counted int64
	used    used
}

// cost is what a stretch cost.
type cost struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_us"` // of this process
	Allocs  float64 `json:"allocs"` // negative: unknown
	Calls   float64 `json:"calls"`  // commands sent to Redis, without those inside scripts
	used    used
}

// begin begins a stretch, after the garbage of the time before was collected. Calls counts the commands sent so far.
func (c *child) begin(ctx context.Context, calls func() int64) *stretch {
	s := &stretch{c: c, calls: calls}
	runtime.GC()
	if c.Profile != "" {
		var err error
		s.profile, err = os.Create(c.file("cpu.pprof"))
		c.err = errors.Join(c.err, err, pprof.StartCPUProfile(s.profile))
	}
	s.used = c.read(ctx)
	if c.Scenario == "S3" || c.Scenario == "S4" {
		s.machine = startReference(ctx, c.redis())
	}
	runtime.ReadMemStats(&s.mem)
	s.counted, s.began, s.cpu = calls(), time.Now(), processorTime()
	return s
}

// read reads the server's counters, if this process has one of its own.
func (c *child) read(ctx context.Context) (u used) {
	if c.server != nil {
		var err error
		u, err = c.server.read(ctx)
		c.err = errors.Join(c.err, err)
	}
	return u
}

// end ends it, and says what it cost.
func (s *stretch) end(ctx context.Context) (x cost) {
	x.Seconds = time.Since(s.began).Seconds()
	x.CPU = float64((processorTime() - s.cpu).Microseconds())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	x.Allocs, x.Calls = float64(mem.Mallocs-s.mem.Mallocs), float64(s.calls()-s.counted)
	if s.profile != nil {
		pprof.StopCPUProfile()
		s.c.err = errors.Join(s.c.err, s.profile.Close())
	}
	if s.machine != nil {
		s.c.err = errors.Join(s.c.err, s.machine.stop(s.c.metrics))
	}
	x.used = s.c.read(ctx)
	x.used.cpu -= s.used.cpu
	x.used.commands -= s.used.commands + s.c.metrics["pings"]
	x.used.bytes -= s.used.bytes
	return x
}

// perTask adds what each of n tasks cost.
func (c *child) perTask(x *cost, n int) {
	c.metrics["server_cpu_us_per_task"] = x.used.cpu / float64(n)
	c.metrics["commands_per_task"] = x.used.commands / float64(n)
	c.metrics["calls_per_task"] = x.Calls / float64(n)
	c.metrics["client_cpu_us_per_task"] = x.CPU / float64(n)
	if x.Allocs >= 0 {
		c.metrics["allocs_per_task"] = x.Allocs / float64(n)
	}
}

// address is the address of the server, for another process of this run.
func (c *child) address() string {
	if f, ok := c.server.(*faktoryServer); ok {
		return f.addr
	}
	return c.redis()
}

// redis is the address of a Redis that answers a PING.
func (c *child) redis() string {
	if r, ok := c.server.(*redisServer); ok {
		return r.Addr()
	}
	return ""
}

// file is a path for what the job leaves in the folder of profiles.
func (j *job) file(what string) string {
	name := fmt.Sprintf("%s-%s-%s-%d-%s", j.Scenario, j.Peer, j.Params.label(), j.Run, what)
	return filepath.Join(j.Profile, strings.NewReplacer(", ", "-", " ", "-", "/", "-").Replace(name))
}

// processorTime is what this process has used so far, in user and system.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
