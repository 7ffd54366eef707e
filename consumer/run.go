package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// The causes that end a run's context, besides those of the session's context. A handler reads them with [context.Cause].
var (
	// ErrTimeout: the run took longer than its task's timeout. The attempt failed.
	ErrTimeout = errors.New("the run timed out")
	// ErrCancelled: a caller cancelled the task.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrReplaced: a newer slot of the same schedule replaces this run.
	ErrReplaced = errors.New("a newer slot replaced the task")
	// ErrDrained: the instance is shutting down and the time to drain is over. The task is handed back, and the attempt
	// does not count unless the handler had succeeded.
	ErrDrained = errors.New("the instance is shutting down")
)

// run is one claimed task on its way through a handler.
type run struct {
	runContext
	again int64 // the fence of a later claim of the same task, or 0; only the loop uses it
	typ   *taskType
	probe bool // look after the run whether its goroutine is locked to a thread
}

// result is a run that ended. Drop means that there is nothing to settle, because the claim is void.
type result struct {
	run    *run
	settle queue.Settlement
	drop   bool
}

// start gives a claimed task to a worker, which sends exactly one result.
//
// If the task runs here already, Redis lost the first claim in a failover and gave this instance a second one. Then start
// begins nothing: the run that is under way will be settled under the new claim.
func (c *Consumer) start(parent context.Context, t *task.Task) {
	if r := c.inflight[t.ID]; r != nil {
		r.again = t.Fence
		c.log.Debug().Str("task", t.ID).Msg("claimed a task that already runs here: redis lost the first claim")
		return
	}
	if c.notes.Output > 0 && c.notes.Every {
		parent = handlers.KeepOutput(parent, c.notes.Output)
	}
	typ := c.typeOf(t.Type)
	r := &run{runContext: runContext{parent: parent, task: t, deadline: time.Now().Add(t.RunTimeout())}, typ: typ, probe: typ.began()}
	c.inflight[t.ID] = r
	c.busy.add(t.Type, 1)
	if c.held > 0 && !strings.HasPrefix(t.Type, task.Own) {
		c.held--
	}
	c.crowd.add(t, 1)
	if c.cfg.Observer != nil {
		c.cfg.Observer.Began(t)
	}
	if typ.locks.Load() {
		go c.work(r, c.results)
		return
	}
	c.workers.begin(r)
}

// typeOf returns the consumer's knowledge of the runs of a type.
func (c *Consumer) typeOf(name string) *taskType {
	if c.last == nil || c.last.name != name { // mostly it is the type of the task before
		if c.types[name] == nil {
			c.types[name] = &taskType{name: name}
		}
		c.last = c.types[name]
	}
	return c.last
}

// work runs the handler and sends the result. A handler that abandon gave up may return in a later session, so the channel is
// a parameter: the result goes to the session in which the run began.
func (c *Consumer) work(r *run, results chan<- result) {
	h, ok := c.handlers.Handler(r.task.Type)
	if !ok { // cannot happen while Handlers stays the same: the consumer claims only from lanes of known types
		h = handlers.Func(func(context.Context, *task.Task) error { return handlers.ErrUnknownType })
	}
	if c.tracer != nil {
		c.workTraced(r, h, results)
		return
	}
	handlers.Do(r, h, r.task, func(err error) {
		out := c.outcome(r, r.why(), err)
		r.over()
		results <- out
	})
}

// outcome decides how a run is settled. Err is the error of its handler; cause is the cause that ended its context, or nil. A
// handler that returned no error has succeeded, even if its context had ended.
func (c *Consumer) outcome(r *run, cause, err error) result {
	t := r.task
	var took time.Duration
	if t.Schedule != "" || c.notes.Every || c.cfg.Observer != nil { // without an archive only runs of schedules are noted
		took = time.Since(r.deadline) + t.RunTimeout()
	}
	err = handlers.Hide(t, err)
	output := c.output(r)
	out := result{run: r, settle: queue.Settlement{ID: t.ID, Fence: t.Fence}}
	s := &out.settle
	word := history.Done
	switch {
	case err == nil:
		c.finish(s, t, history.Done, took, nil, output)
	case errors.Is(cause, ErrDrained):
		word = history.Returned
		handBack(s, t, true)
		s.Note = c.notes.Run(t, history.Returned, took, "", output)
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrReplaced):
		word = history.Cancelled
		c.log.Info().Func(ofRun(t)).AnErr("cause", cause).Msg("run cancelled")
		c.finish(s, t, history.Cancelled, took, cause, output)
	case cause != nil && !errors.Is(cause, ErrTimeout):
		word = history.Lost
		out.drop = true // the lease is lost: the instance that recovers the task settles it
	default:
		c.fail(s, t, took, late(t, cause, err), output)
		word = history.Failed
		if s.Outcome == queue.Died {
			word = history.Dead
		}
	}
	if c.cfg.Observer != nil {
		c.cfg.Observer.Ended(t, word, took)
	}
	return out
}

// output returns the output of a run, for its note.
func (c *Consumer) output(r *run) string {
	if !c.notes.Every {
		return ""
	}
	return handlers.Kept(r, r.task)
}

// late says in the error of a run that the run timed out, if it did.
func late(t *task.Task, cause, err error) error {
	if errors.Is(cause, ErrTimeout) && !handlers.IsDead(err) {
		if errors.Is(err, ErrTimeout) { // the handler returned the cause of its context
			return fmt.Errorf("%w after %s", ErrTimeout, t.RunTimeout())
		}
		return fmt.Errorf("%w after %s: %w", ErrTimeout, t.RunTimeout(), err)
	}
	return err
}

// finish settles a run as done or cancelled. The task leaves, or stays visible for as long as its Keep; a kept task
// records cause, if not nil, as its last error.
func (c *Consumer) finish(s *queue.Settlement, t *task.Task, word history.Word, took time.Duration, cause error, output string) {
	s.Note = c.notes.Run(t, word, took, "", output)
	s.Outcome = queue.Finished
	if t.Keep > 0 {
		keep(s, t, cause)
	}
}

// keep settles a finished task so that it stays visible. It must not be inlined: the copy of the task would then lie on
// the stack of every run, and each new goroutine would have to grow its stack for it. That costs more than the rest of a
// short run.
//
//go:noinline
func keep(s *queue.Settlement, t *task.Task, cause error) {
	kept := *t
	if cause != nil {
		kept.Fail(task.Failure{At: time.Now().UTC(), Attempt: t.Attempt, Instance: t.Instance, Error: cause.Error()})
	}
	kept.Attempts = t.Attempt
	if len(kept.Payload) > keptPayload {
		kept.Payload, kept.Sealed = nil, nil
	}
	s.Outcome, s.Keep, s.Record = queue.Kept, t.Keep, task.Encode(nil, &kept)
}

// keptPayload is the largest payload, in bytes, that a finished task keeps.
const keptPayload = 1 << 10

// handBack settles a run as handed back: the task is due again and the attempt does not count. A task that never began
// looks as if it had never been claimed, and is not noted: its claim was no run.
func handBack(s *queue.Settlement, t *task.Task, begun bool) {
	s.Outcome, s.Lane, s.Due, s.Task = queue.Moved, queue.LaneOf(t), t.Due, t
	if begun || t.Attempts > 0 {
		s.Due = queue.Again(t.Due)
	}
}

// handedBack reports whether handBack made a settlement.
func handedBack(s *queue.Settlement) bool { return s.Outcome == queue.Moved && s.Record == nil }

// onlyHandedBack reports whether no settlement in batch says that a run ended.
func onlyHandedBack(batch []queue.Settlement) bool {
	return !slices.ContainsFunc(batch, func(s queue.Settlement) bool { return !handedBack(&s) })
}

// ofRun says in a line of the log of which run it is.
func ofRun(t *task.Task) func(*zerolog.Event) {
	return func(e *zerolog.Event) {
		if t.Schedule != "" {
			e.Str("schedule", t.Schedule)
		}
		e.Str("task", t.ID).Str("type", t.Type).Int("attempt", t.Attempt).Str("release", t.Release)
	}
}

// fail settles a failed attempt: the task is due again after its backoff, or dead if this was the last attempt. It is not
// inlined, for the same reason as keep.
//
//go:noinline
func (c *Consumer) fail(s *queue.Settlement, t *task.Task, took time.Duration, err error, output string) {
	report := handlers.Report(err)
	failed := queue.Fail(t, task.Failure{At: time.Now().UTC(), Attempt: t.Attempt, Instance: t.Instance, Error: report}, handlers.IsDead(err))
	s.Record = failed.Record
	if failed.Dead {
		s.Outcome, s.Note = queue.Died, c.notes.Run(t, history.Dead, took, report, output)
		c.log.Error().Func(ofRun(t)).Err(err).Msg("task is dead")
		return
	}
	delay, given := handlers.RetryDelay(err)
	if !given {
		delay = t.Backoff.Delay(failed.Attempts)
	}
	s.Outcome, s.Lane, s.Delay, s.Note, s.Task = queue.Moved, queue.LaneOf(t), delay, c.notes.Run(t, history.Failed, took, report, output), t
	c.log.Warn().Func(ofRun(t)).Err(err).Dur("retry_in", delay).Msg("run failed")
}
