package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/task"
)

// Scenario is one trial.
type Scenario struct {
	Name string
	// Load is the work of the instances. Default: ten schedules, ten times a second.
	Load Load
	// Quiet says that Play acts only in moments in which no task runs. Then no run may be repeated, and the lag of slots
	// that came due while no instance led is measured separately.
	Quiet bool
	// Play carries out the scenario. If it gets stuck, the result says so.
	Play func(context.Context, *Stage) error

	config string // lines that the config of the instances has in addition
	skip   string // why it cannot be tried
}

// Load is the work of the instances on a stage: how many schedules, and how often each is due. The lease bounds how long
// the loss of a leader delays them.
type Load struct {
	Schedules    int
	Every, Lease time.Duration
}

// suiteLoad has a short lease, so that the loss of a leader delays little.
var suiteLoad = Load{Schedules: beats, Every: beatEvery, Lease: 2 * time.Second}

const (
	beats     = 10
	beatEvery = 100 * time.Millisecond
)

// roughly is the largest uncertainty about the clock of Redis that is not reported.
const roughly = 20 * time.Millisecond

// Play plays a scenario in a scratch namespace, judges it, and removes all that it made, even if ctx ends. It uses only
// those Options that concern one scenario. A broken promise is in the result and is not an error; with an error, the result
// has at most the logs.
func Play(ctx context.Context, o Options, namespace string, c *Scenario) (*trial.Result, error) {
	if c.skip != "" {
		return &trial.Result{Scenario: c.Name, OK: true, Skipped: c.skip}, nil
	}
	began := time.Now()
	s, err := newStage(ctx, o, namespace, c)
	if err != nil {
		return &trial.Result{}, err
	}
	over := false
	defer func() {
		if !over { // a panic is under way
			_ = s.close()
		}
	}()
	r, err := s.judged(ctx)
	over = true
	if closed := s.close(); closed != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s: %w", ErrLeft, namespace, closed))
	}
	r.Scenario, r.Seconds = c.Name, seconds(time.Since(began))
	return r, err
}

// judged plays a scenario and judges it. A scenario that gets stuck counts as a broken promise, unless Redis is gone or a
// user interrupted the suite.
func (s *Stage) judged(ctx context.Context) (*trial.Result, error) {
	err := s.c.Play(ctx, s)
	if err == nil {
		err = s.finish(ctx)
	}
	if stop := s.hopeless(ctx, err); stop != nil {
		return &trial.Result{Logs: s.LastWords()}, stop
	}
	s.KillAll()
	e, gathered := s.evidence(ctx)
	if gathered != nil {
		return &trial.Result{Logs: s.LastWords()}, errors.Join(err, gathered)
	}
	r := trial.Judge(e)
	r.Note = s.note
	if r.Note == "" && e.Slack > roughly {
		r.Note = fmt.Sprintf("the suite cannot notice a slot that is early by less than %.0f ms: it knows the clock of Redis no better here", trial.Millis(e.Slack))
	}
	if err != nil {
		s.found = append(s.found, strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	r.OK = r.OK && len(s.found) == 0
	r.Wrong = append(s.found, r.Wrong...)
	if !r.OK {
		r.Logs = s.LastWords()
		if s.stall > s.c.Load.Lease/4 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("this machine held this program up for as long as %.0f ms: try again when it is less busy", trial.Millis(s.stall)))
		}
	}
	return r, nil
}

// hopeless returns the error that ends the suite, if there is one.
func (s *Stage) hopeless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil || errors.Is(err, errStuck) {
		ctx, done := context.WithTimeout(ctx, removeTime)
		defer done()
		_, err = s.Queue.Now(ctx)
	}
	// The error that is left decides: it comes from Redis itself, or from something that onbeat did.
	if store.Retryable(err) || errors.Is(err, task.ErrDenied) || errors.Is(err, task.ErrFull) || errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
