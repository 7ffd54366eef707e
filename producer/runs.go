package producer

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

// Run is one run of a schedule's task, as the history records it.
type Run struct {
	Schedule string
	Task     string    // its ID
	Slot     time.Time // zero if the run was triggered
	To       time.Time // the last slot of a range without runs, which begins with Slot; else zero
	Slots    int64     // how many slots the range has
	Attempt  int
	Began    time.Time     // when an instance claimed it; zero if the slot ended without a run, such as a skipped one
	Took     time.Duration // how long the handler ran; zero if not known
	Lag      time.Duration // from the slot's time, without jitter, until it began
	Outcome  task.Outcome
	Why      string // why a slot did not run
	Error    string // the error of a failed run, cut to 200 bytes
	Output   string // the output of its handler, as far as it is noted for an archive
	Instance string // the instance that ran it; "" if not known
	Release  string // the release of that instance
	Entry    string // the ID of the entry of the history, of a run that [Schedules.Runs] returned
}

// Ended returns when the handler returned; zero if not known.
func (r *Run) Ended() time.Time {
	if r.Took == 0 {
		return time.Time{}
	}
	return r.Began.Add(r.Took)
}

// OnGrid reports whether it was the run of a slot in its time, and not triggered or backfilled: only that has a lag.
func (r *Run) OnGrid() bool {
	return !r.Began.IsZero() && !r.Slot.IsZero() && !strings.HasSuffix(r.Task, backfillMark)
}

// failed reports whether the run ended without its task being done.
func (r *Run) failed() bool {
	return r.Outcome == history.Failed || r.Outcome == history.Dead || r.Outcome == history.Lost
}

// RunOf returns the run that a note is about.
func RunOf(n *archive.Note) Run {
	r := Run{
		Schedule: n.Maker, Task: n.TaskID, Slot: n.Slot, Attempt: n.Attempt, Began: n.Claimed, Took: n.Took,
		Outcome: n.Word, Why: n.Why, Error: n.Error, Output: n.Output, Instance: n.Instance, Release: n.Release,
	}
	if _, slot, ok := task.ParseSlotID(strings.TrimSuffix(n.TaskID, backfillMark)); ok {
		r.Slot = slot
	}
	if n.TaskID == "" {
		r.Schedule, r.Slot, r.To, r.Slots = n.Schedule, n.From, n.To, n.Count
	}
	if r.OnGrid() {
		r.Lag = r.Began.Sub(r.Slot)
	}
	return r
}

// Runs returns the runs of a schedule, or of all schedules if name is "", newest first, as far back as the history and the past
// reach: at least limit (default 20) if there are as many. To go on, pass next as after; next is "" at the end.
func (s *Schedules) Runs(ctx context.Context, name, after string, limit int) (runs []Run, next string, err error) {
	if limit <= 0 {
		limit = 20
	}
	err = s.past.HistoryBefore(ctx, after, name, func(e history.Entry) bool {
		if len(runs) >= limit {
			return false
		}
		next = e.ID
		for i := len(e.Notes) - 1; i >= 0; i-- {
			n := &e.Notes[i]
			if of := cmp.Or(n.Maker, n.Schedule); of != "" && (name == "" || name == of) && n.Word != history.Was {
				r := RunOf(n)
				r.Entry = e.ID
				runs = append(runs, r)
			}
		}
		return true
	})
	if len(runs) < limit {
		next = ""
	}
	return runs, next, err
}

// Latest says how the last runs of a schedule went.
type Latest struct {
	Run      Run       // the newest that began
	Failures int       // how many in a row failed, up to Run
	Success  time.Time // when the last successful run began; zero if none is known
}

// mostLatest is how many entries of the history are read for the latest runs.
const mostLatest = 10_000

// Latest returns, by name, how the last runs of the named schedules went, from the newest 10,000 entries of the history. A
// schedule without a run there is left out.
func (s *Schedules) Latest(ctx context.Context, names []string) (map[string]*Latest, error) {
	open := make(map[string]bool, len(names)) // those without a known success yet
	for _, name := range names {
		open[name] = true
	}
	latest := map[string]*Latest{}
	read := 0
	err := s.q.HistoryBefore(ctx, "", func(e history.Entry) bool {
		for i := len(e.Notes) - 1; i >= 0; i-- {
			n := &e.Notes[i]
			if name := n.Maker; !n.Claimed.IsZero() && open[name] {
				l := latest[name]
				if l == nil {
					l = &Latest{Run: RunOf(n)}
					latest[name] = l
				}
				if l.add(RunOf(n)) {
					delete(open, name)
				}
			}
		}
		read++
		return len(open) > 0 && read < mostLatest
	})
	return latest, err
}

// add takes in the run before those that are known, and reports whether it was a success.
func (l *Latest) add(r Run) bool {
	switch {
	case r.Outcome == history.Done:
		l.Success = r.Began
		return true
	case r.failed():
		l.Failures++
	}
	return false
}
