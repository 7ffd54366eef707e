package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// Why a run's context ended: its causes, besides those of the stay.
var (
	// ErrTimeout: the run took longer than its task allows.
	ErrTimeout = errors.New("the run timed out")
	// ErrCancelled: somebody asked for the task to be cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrReplaced: a newer slot of the same schedule takes its place.
	ErrReplaced = errors.New("a newer slot takes its place")
	// ErrDrained: the instance is shutting down and the time to drain is over. The task is handed back.
	ErrDrained = errors.New("the instance is shutting down")
)

// run is one claimed task on its way through a handler.
type run struct {
	runContext
	again int64 // the fence of a later claim of the same run, or 0; the loop's own
}

// result is a run that ended. Drop says that there is nothing to settle: the claim is void.
type result struct {
	run    *run
	settle queue.Settlement
	drop   bool
}

// start runs a task on a goroutine of its own. Its result is sent exactly once.
//
// One that runs here already was claimed once more because Redis has lost the first claim: what is running is its run, and is
// settled under the new claim.
func (c *Consumer) start(parent context.Context, t *task.Task) {
	if r := c.inflight[t.ID]; r != nil {
		r.again = t.Fence
		c.log.Warn().Str("task", t.ID).Msg("claimed once more while it runs here: redis has lost the first claim")
		return
	}
	r := &run{runContext: runContext{parent: parent, task: t, deadline: time.Now().Add(t.RunTimeout())}}
	c.inflight[t.ID] = r
	go c.work(r, c.results)
}

// work runs the handler. One that was given up on may end in a later stay: its result goes where it began.
func (c *Consumer) work(r *run, results chan<- result) {
	h, ok := c.handlers.Handler(r.task.Type)
	if !ok { // the claim reads only lanes of known types
		h = handlers.Func(func(context.Context, *task.Task) error { return handlers.ErrUnknownType })
	}
	handlers.Do(r, h, r.task, func(err error) {
		out := c.outcome(r, r.why(), err)
		r.over()
		results <- out
	})
}

// outcome says what becomes of a run whose handler returned err, when its context's cause (nil: it lives) is known.
func (c *Consumer) outcome(r *run, cause, err error) result {
	t := r.task
	var took time.Duration
	if t.Schedule != "" { // of other tasks nothing is kept
		took = time.Since(r.deadline) + t.RunTimeout()
	}
	out := result{run: r, settle: queue.Settlement{ID: t.ID, Fence: t.Fence}}
	s := &out.settle
	switch {
	case err == nil:
		c.finish(s, t, history.Done, took, nil)
	case errors.Is(cause, ErrDrained):
		handBack(s, t, true)
		s.Note = history.Run(t, history.Returned, took, "")
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrReplaced):
		c.log.Info().Str("task", t.ID).AnErr("cause", cause).Msg("run cancelled")
		c.finish(s, t, history.Cancelled, took, cause)
	case cause != nil && !errors.Is(cause, ErrTimeout):
		out.drop = true // the lease is lost: whoever takes the task over settles it
	default:
		if errors.Is(cause, ErrTimeout) && !handlers.IsDead(err) {
			err = fmt.Errorf("%w after %s: %w", ErrTimeout, t.RunTimeout(), err)
		}
		c.fail(s, t, took, err)
	}
	return out
}

// finish takes a task out, or keeps it visible for as long as it asks; then its last error says what cut it short.
func (c *Consumer) finish(s *queue.Settlement, t *task.Task, word history.Word, took time.Duration, cause error) {
	s.Note = history.Run(t, word, took, "")
	s.Outcome = queue.Finished
	if t.Keep > 0 {
		keep(s, t, cause)
	}
}

// keep is a function of its own so that the copy of the task is not on the stack of every run: a new goroutine would
// have to grow its stack for it, which costs more than all the rest of a short run.
//
//go:noinline
func keep(s *queue.Settlement, t *task.Task, cause error) {
	kept := *t
	if cause != nil {
		kept.Fail(task.Failure{At: time.Now().UTC(), Attempt: t.Attempt, Instance: t.Instance, Error: cause.Error()})
	}
	kept.Attempts = t.Attempt
	if len(kept.Payload) > keptPayload {
		kept.Payload = nil
	}
	s.Outcome, s.Keep, s.Record = queue.Kept, t.Keep, task.Encode(nil, &kept)
}

// keptPayload is the largest payload that a finished task keeps.
const keptPayload = 1 << 10

// handBack returns a task without counting the attempt. One that never began is as if it had not been claimed.
func handBack(s *queue.Settlement, t *task.Task, begun bool) {
	s.Outcome, s.Lane, s.Due, s.Task = queue.Moved, queue.LaneOf(t), t.Due, t
	if begun {
		s.Note = history.Run(t, history.Returned, 0, "") // else the slot has not begun, and the history has nothing to say
	}
	if begun || t.Attempts > 0 {
		s.Due = queue.Again(t.Due)
	}
}

// handedBack reports whether a settlement is one of handBack.
func handedBack(s *queue.Settlement) bool { return s.Outcome == queue.Moved && s.Record == nil }

func onlyHandedBack(batch []queue.Settlement) bool {
	return !slices.ContainsFunc(batch, func(s queue.Settlement) bool { return !handedBack(&s) })
}

// fail counts the attempt, and makes the task due again, or dead if that was the last. It is not inlined for the same
// reason as keep.
//
//go:noinline
func (c *Consumer) fail(s *queue.Settlement, t *task.Task, took time.Duration, err error) {
	report := handlers.Report(err)
	failed := queue.Fail(t, task.Failure{At: time.Now().UTC(), Attempt: t.Attempt, Instance: t.Instance, Error: report}, handlers.IsDead(err))
	s.Record = failed.Record
	event := c.log.Warn().Str("task", t.ID).Str("type", t.Type).Int("attempt", t.Attempt).Err(err)
	if failed.Dead {
		s.Outcome, s.Note = queue.Died, history.Run(t, history.Dead, took, report)
		event.Msg("task is dead")
		return
	}
	delay, given := handlers.RetryDelay(err)
	if !given {
		delay = t.Backoff.Delay(failed.Attempts)
	}
	s.Outcome, s.Lane, s.Delay, s.Note, s.Task = queue.Moved, queue.LaneOf(t), delay, history.Run(t, history.Failed, took, report), t
	event.Dur("retry_in", delay).Msg("run failed")
}
