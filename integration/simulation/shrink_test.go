package simulation

import (
	"slices"
	"testing"
	"time"
)

// shrink makes a plan smaller as long as it shows a fault of the same kind: fewer steps, processes and schedules, a shorter
// time, plainer settings. A plan does not decide which goroutine goes first. So a plan that shows its fault only now and then
// may stay larger than necessary.
func shrink(t *testing.T, p *plan, kind string, budget time.Duration) *plan {
	t.Helper()
	end := time.Now().Add(budget)
	shows := func(q *plan) bool {
		q.tidy()
		if len(q.Processes) == 0 || time.Now().After(end) {
			return false
		}
		return slices.ContainsFunc(play(t, q).faults, func(f fault) bool { return f.Kind == kind })
	}
	best := p.clone()
	for smaller := true; smaller && time.Now().Before(end); {
		smaller = false
		for _, cut := range cuts(best) {
			q := best.clone()
			if !cut(q) {
				continue
			}
			if shows(q) {
				best, smaller = q, true
			}
		}
	}
	return best
}

// cuts are the ways to make a plan smaller. Each returns false if it can do nothing more.
func cuts(p *plan) []func(*plan) bool {
	var list []func(*plan) bool
	for n := len(p.Steps) / 2; n >= 1; n /= 2 {
		for i := 0; i < len(p.Steps); i += n {
			list = append(list, func(q *plan) bool {
				if i >= len(q.Steps) {
					return false
				}
				q.Steps = slices.Delete(q.Steps, i, min(i+n, len(q.Steps)))
				return true
			})
		}
	}
	for i := range p.Processes {
		list = append(list, func(q *plan) bool {
			if i >= len(q.Processes) {
				return false
			}
			q.Processes = slices.Delete(q.Processes, i, i+1)
			return true
		})
	}
	for i := range p.Schedules {
		list = append(list, func(q *plan) bool {
			if i >= len(q.Schedules) {
				return false
			}
			q.Schedules = slices.Delete(q.Schedules, i, i+1)
			return true
		})
	}
	list = append(list,
		func(q *plan) bool { q.For /= 2; return q.For.d() > 2*time.Second },
		func(q *plan) bool { had := q.Limits != nil; q.Limits = nil; return had },
		func(q *plan) bool { had := q.Begin != ""; q.Begin = ""; return had },
		func(q *plan) bool { had := q.Encrypted; q.Encrypted = false; return had },
	)
	return append(list, plain(p)...)
}

// plain are cuts that reset settings to their defaults.
func plain(p *plan) []func(*plan) bool {
	var list []func(*plan) bool
	each := func(fn func(*process) bool) func(*plan) bool {
		return func(q *plan) bool {
			did := false
			for i := range q.Processes {
				did = fn(&q.Processes[i]) || did
			}
			return did
		}
	}
	list = append(list,
		each(func(x *process) bool { had := x.Queues != nil; x.Queues, x.Strict = nil, false; return had }),
		each(func(x *process) bool {
			had := x.CheckTakes+x.CheckFails > 0
			x.CheckTakes, x.CheckFails = 0, 0
			return had
		}),
		each(func(x *process) bool { had := x.MinReady > 0; x.MinReady = 0; return had }),
		each(func(x *process) bool { had := x.Standby; x.Standby = false; return had }),
	)
	for i := range p.Schedules {
		list = append(list, func(q *plan) bool {
			if i >= len(q.Schedules) {
				return false
			}
			t := &q.Schedules[i]
			was := *t
			t.Jitter, t.Until, t.MaxRuns, t.Versions, t.CatchUp, t.Priority, t.Queue = 0, 0, 0, nil, 0, "", ""
			return was.Jitter+was.Until > 0 || was.MaxRuns > 0 || was.Versions != nil || was.Priority != "" || was.Queue != ""
		})
	}
	return list
}

// tidy removes references to things that are gone, and moves the end of the plan to just after the last step.
func (p *plan) tidy() {
	known := func(name string) bool { return p.timetable(name) != nil }
	for i := range p.Processes {
		p.Processes[i].Declares = slices.DeleteFunc(p.Processes[i].Declares, func(name string) bool { return !known(name) })
	}
	p.Processes = slices.DeleteFunc(p.Processes, func(x process) bool { return x.Start > p.For })
	p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool {
		if s.At > p.For || s.Process != "" && p.process(s.Process) == nil {
			return true
		}
		switch s.Do {
		case "apply", "change", "pause", "resume", "delete", "trigger", "backfill":
			return !known(s.Name)
		}
		return false
	})
}
