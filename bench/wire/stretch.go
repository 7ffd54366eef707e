package wire

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// Stretch is a piece of a run that is measured.
type Stretch struct {
	c       *Child
	name    string
	began   time.Time
	cpu     time.Duration
	mem     runtime.MemStats
	calls   func() int64
	counted int64
	profile *os.File
}

// Begin begins a stretch: what came before is collected, and the server's counters are read. Calls counts the commands
// sent so far.
func (c *Child) Begin(name string, calls func() int64) *Stretch {
	s := &Stretch{c: c, name: name, calls: calls}
	runtime.GC()
	c.Ask(Event{Do: "begin", Name: name})
	if dir := c.Job.Profile; dir != "" {
		file := strings.Trim(c.Job.Title()+"-"+name, "-")
		if f, err := os.Create(filepath.Join(dir, file+".cpu.pprof")); err == nil && pprof.StartCPUProfile(f) == nil {
			s.profile = f
		}
	}
	runtime.ReadMemStats(&s.mem)
	s.counted, s.cpu, s.began = calls(), cpu(), time.Now()
	return s
}

// Began is when the stretch began.
func (s *Stretch) Began() time.Time { return s.began }

// End ends it. If e says no Seconds, they are those until now.
func (s *Stretch) End(e Event) {
	if e.Seconds == 0 {
		e.Seconds = time.Since(s.began).Seconds()
	}
	used := cpu() - s.cpu
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if s.profile != nil {
		pprof.StopCPUProfile()
		s.profile.Close()
		if f, err := os.Create(strings.Replace(s.profile.Name(), ".cpu.", ".allocs.", 1)); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			f.Close()
		}
	}
	e.Do, e.Name = "end", s.name
	e.Client = &Client{
		CPU: float64(used.Microseconds()), Allocs: float64(mem.Mallocs - s.mem.Mallocs),
		Bytes: float64(mem.TotalAlloc - s.mem.TotalAlloc), Calls: float64(s.calls() - s.counted), RSS: rssMB(),
	}
	s.c.Ask(e)
}

// cpu is what this process has used so far, in user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rssMB is the most memory the process has had, in MB. (Linux counts it in kB.)
func rssMB() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Maxrss) / 1e3
}
