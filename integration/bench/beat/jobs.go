package main

import "time"

// job is a periodic job of the replicas.
type job struct {
	Name  string        `json:"name"`
	Every time.Duration `json:"every"`
	Takes time.Duration `json:"takes"` // how long a run takes
	Wall  bool          `json:"wall"`  // on whole seconds of the wall clock; otherwise the first run is the first slot
}

// The jobs. Each is a case of the comparison.
const (
	second  = "second"  // each second of the wall clock
	five    = "five"    // each five seconds from the first run
	long    = "long"    // a run of three seconds, which stops, kills and freezes meet in the middle
	overrun = "overrun" // a run that is longer than the interval
	changes = "changes" // a release changes its interval
	dropped = "dropped" // a release drops it
)

// short is how long the run of a short job takes.
const short = 100 * time.Millisecond

// jobsOf are the jobs of a release of this story, and those that an earlier release had.
func (s *script) jobsOf(release int) (jobs []job, gone []string) {
	every := 5 * time.Second
	if release >= s.changeAt {
		every = 3 * time.Second
	}
	jobs = []job{
		{second, time.Second, short, true},
		{five, 5 * time.Second, short, false},
		{long, 4 * time.Second, 3 * time.Second, false},
		{overrun, 2 * time.Second, 3 * time.Second, false},
		{changes, every, short, false},
	}
	if release >= s.dropAt {
		return jobs, []string{dropped}
	}
	return append(jobs, job{dropped, time.Second, short, true}), nil
}
