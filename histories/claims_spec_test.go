package histories

import (
	"fmt"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// claimAsk is one call about one task. If task is empty, the call is about the generation that makes it. Generations are
// numbered from 0.
type claimAsk struct {
	op      string // enqueue claim settle look recover die cancel find cycle
	task    string
	gen     int
	fence   int64         // settle, recover
	outcome queue.Outcome // settle
	again   bool          // settle: handed back, or retried without delay; recover: it will run again
	counts  bool          // settle: the attempt counts
	forget  bool          // cancel: also a task that is dead or done
	seq     int64         // cycle
}

// claimSaid is the reply.
type claimSaid struct {
	lost    bool
	refused string
	now     int64 // of a cycle, by the clock of Redis (ms)
	ok      bool  // the call took effect: added, settled, moved
	fence   int64 // claim; look: 0 if the task is not held
	attempt int   // claim
	due     int64 // settle: when the task is due again at the earliest
	state   task.State
}

// place is where a task is, and its claims so far.
type place struct {
	at       task.State // "": nowhere
	gen      int        // the generation that runs it
	fence    int64      // the fence of that run; 0: no caller was told
	top      int64      // the largest fence that a caller was told
	asked    bool       // a caller asked to cancel this run
	attempts int        // attempts that ended, and count
	due      int64      // it does not run before this moment
	gone     uint64     // generations that are dead
	seq      int64      // of a generation: the number of its last cycle
}

var claimsSpec = spec[place, claimAsk, claimSaid]{
	step: place.after,
	part: func(a claimAsk) string {
		if a.task == "" {
			return fmt.Sprint("generation ", a.gen)
		}
		return a.task
	},
}

const (
	stale = "stale"
	alive = "alive"
)

func (s place) after(a claimAsk, r claimSaid) []place {
	if !r.lost {
		return s.does(a, r)
	}
	next := []place{s} // the call never took effect
	switch a.op {
	case "look", "find":
		return next
	case "claim":
		if s.at == task.Due && !s.dead(a.gen) {
			next = append(next, s.run(a.gen, 0))
		}
		return next
	case "cancel":
		r.state = s.at
	default:
		r.ok = true
	}
	return append(next, s.does(a, r)...)
}

func (s place) dead(gen int) bool { return s.gone&(1<<gen) != 0 }

func (s place) run(gen int, fence int64) place {
	s.at, s.gen, s.fence, s.top, s.asked = task.Running, gen, fence, max(s.top, fence), false
	return s
}

// holds reports whether a generation runs the task under a fence.
func (s place) holds(gen int, fence int64) bool {
	return s.at == task.Running && s.gen == gen && s.fence == fence
}

// does returns the states that may follow a call with a reply.
func (s place) does(a claimAsk, r claimSaid) []place {
	switch a.op {
	case "die":
		s.gone |= 1 << a.gen
	case "cycle":
		return s.cycles(a, r)
	case "enqueue":
		if r.ok != (s.at == "") {
			return nil
		}
		if r.ok {
			s.at, s.attempts, s.due = task.Due, 0, 0
		}
	case "claim":
		if s.at != task.Due || s.dead(a.gen) || r.fence <= s.top || r.attempt != s.attempts+1 || r.now < s.due {
			return nil
		}
		s = s.run(a.gen, r.fence)
	case "settle":
		if s.asked && a.outcome == queue.Moved && !s.dead(a.gen) && s.holds(a.gen, a.fence) {
			return only(s, r.lost || !r.ok) // the task does not run again, and its claim stays
		}
		if s.dead(a.gen) || r.ok != s.holds(a.gen, a.fence) {
			return nil
		}
		if r.ok {
			s = s.settled(a, r)
		}
	case "recover":
		return s.recovers(a, r)
	case "look":
		return s.looks(a, r)
	case "cancel":
		if r.state != s.at {
			return nil
		}
		if s.at == task.Due || a.forget && s.at != task.Running {
			s.at = ""
		}
		s.asked = s.at == task.Running
	case "find":
		if r.state != s.at {
			return nil
		}
	}
	return []place{s}
}

// settled returns the task after its run ended.
func (s place) settled(a claimAsk, r claimSaid) place {
	s.asked = false
	switch a.outcome {
	case queue.Finished:
		s.at = ""
	case queue.Kept:
		s.at = task.Done
	case queue.Died:
		s.at = task.Dead
	case queue.Moved:
		s.at, s.due = task.Due, r.due
		if a.counts {
			s.attempts++
		}
	}
	return s
}

// recovers: a task goes back only if a dead generation still runs it, under the fence that the caller read. If a caller asked
// to cancel it, it is dead.
func (s place) recovers(a claimAsk, r claimSaid) []place {
	if r.refused == alive {
		return []place{s}
	}
	if r.ok != s.holds(a.gen, a.fence) || !s.dead(a.gen) {
		return nil
	}
	if r.ok {
		s.at = task.Dead
		if a.again && !s.asked {
			s.at, s.due = task.Due, 0
			s.attempts++
		}
		s.asked = false
	}
	return []place{s}
}

// looks: a claim whose reply was lost becomes known.
func (s place) looks(a claimAsk, r claimSaid) []place {
	held := s.at == task.Running && s.gen == a.gen
	switch {
	case held != (r.fence != 0):
		return nil
	case held && s.fence == 0 && r.fence > s.top:
		asked := s.asked
		s = s.run(a.gen, r.fence)
		s.asked = asked
	case held && s.fence != r.fence:
		return nil
	}
	return []place{s}
}

// cycles: each cycle of a generation has a larger number than the last, and a dead generation makes none.
func (s place) cycles(a claimAsk, r claimSaid) []place {
	switch {
	case r.refused == fenced:
		return only(s, s.dead(a.gen))
	case s.dead(a.gen) || (r.refused == stale) != (a.seq <= s.seq):
		return nil
	}
	s.seq = max(s.seq, a.seq)
	return []place{s}
}
