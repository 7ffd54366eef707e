package admin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// Summary says in a few numbers how the schedules of a namespace have done lately. Its figures of runs are
// of the time from From to Now, which is shorter than asked if that had more than 20,000 runs.
type Summary struct {
	Now  time.Time `json:"now"` // by the clock of Redis
	From time.Time `json:"from"`

	// Active schedules are all but the Paused ones.
	Active int64 `json:"active"`
	Paused int64 `json:"paused"`

	// Done, Failed and Dead count runs by how they ended: well, to be retried, or for good. Lost ones went with their instance.
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	Dead   int64 `json:"dead"`
	Lost   int64 `json:"lost"`
	// Missed and Skipped count slots that did not run: nobody led when they were due, or a run before them went on.
	Missed  int64 `json:"missed"`
	Skipped int64 `json:"skipped"`

	// Lag is of the slots that were due in that time, from when each was due until an instance took it first: a slot that died and is
	// retried by hand is not late. It is nil if there is none.
	Lag *Lag `json:"lag,omitempty"`

	// Ahead counts the slots that come in the minute after Now, in steps of 5 s.
	Ahead []int64 `json:"ahead"`
	// CouldNotAsk are the partitions that did not answer.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// Lag says how long slots waited.
type Lag struct {
	Slots int   `json:"slots"` // how many there are
	P50MS int64 `json:"p50_ms"`
	P99MS int64 `json:"p99_ms"`
	MaxMS int64 `json:"max_ms"`
}

// The bounds of a summary.
const (
	summaryTime = 5 * time.Minute // by default
	summaryRuns = 20_000          // that are read
	aheadStep   = 5 * time.Second
	aheadSteps  = 12
)

// summaries follow the schedules from one summary to the next, so that none reads them all.
type summaries struct {
	mu       sync.Mutex
	follower *producer.Follower
}

func (a *activity) Summary(ctx context.Context, since time.Duration) (Summary, error) {
	t, err := a.tally(ctx, since)
	if err != nil {
		return Summary{}, err
	}
	t.measure()
	return t.Summary, nil
}

func (a *activity) tally(ctx context.Context, since time.Duration) (*tally, error) {
	if since <= 0 {
		since = summaryTime
	}
	now, err := a.q.Now(ctx)
	if err != nil {
		return nil, err
	}
	a.summaries.mu.Lock()
	defer a.summaries.mu.Unlock()
	f := a.summaries.follower
	if f == nil {
		if f, err = producer.NewFollower(a.q.Client(), a.q.Namespace()); err != nil {
			return nil, err
		}
		a.summaries.follower = f
	}
	found, err := f.Follow(ctx)
	if err != nil {
		return nil, err
	}
	t := &tally{
		Summary:  Summary{Now: now.UTC(), From: now.Add(-since).UTC(), Active: found.Active, Paused: found.Paused},
		follower: f, lags: map[string]int64{},
	}
	t.Ahead = f.Ahead(now, aheadStep, aheadSteps)
	return t, t.read(ctx, a.q)
}

// tally makes a summary of the history, which it reads backwards.
type tally struct {
	Summary
	follower *producer.Follower
	lags     map[string]int64 // ms, by task
}

// read takes in the history, the newest first.
func (t *tally) read(ctx context.Context, q *queue.Queue) error {
	notes := 0
	return q.HistoryBefore(ctx, "", func(e history.Entry) bool {
		switch {
		case e.At.Before(t.From):
			return false
		case notes >= summaryRuns:
			t.From = e.At.UTC()
			return false
		}
		for i := len(e.Notes) - 1; i >= 0; i-- {
			if n := &e.Notes[i]; n.Schedule != "" || n.Maker != "" {
				notes++
				t.note(n)
			}
		}
		return true
	})
}

// note takes in what became of a run or of slots.
func (t *tally) note(n *history.Note) {
	switch n.Word {
	case history.Done:
		t.Done++
	case history.Failed:
		t.Failed++
	case history.Dead:
		t.Dead++
	case history.Lost:
		t.Lost++
	case history.Missed:
		t.Missed += history.SlotsOf(n)
	case history.Skipped:
		t.Skipped += history.SlotsOf(n)
	}
	t.wait(producer.RunOf(n))
}

// wait takes in how long a slot waited. A task that is retried by hand begins again at its first attempt, so the first of its runs counts,
// which is read last.
func (t *tally) wait(r producer.Run) {
	if !r.OnGrid() || r.Attempt > 1 {
		return
	}
	if due := t.follower.Due(r.Schedule, r.Slot); !due.Before(t.From) {
		t.lags[r.Task] = max(r.Began.Sub(due).Milliseconds(), 0)
	}
}

// measure finds the lags that the summary has.
func (t *tally) measure() {
	if len(t.lags) == 0 {
		return
	}
	lags := slices.Sorted(maps.Values(t.lags))
	at := func(percent int) int64 { return lags[(len(lags)*percent+99)/100-1] }
	t.Lag = &Lag{Slots: len(lags), P50MS: at(50), P99MS: at(99), MaxMS: at(100)}
}
