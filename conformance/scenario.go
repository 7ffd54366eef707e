package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
)

// Scenario is one thing to try.
type Scenario struct {
	Name string
	// Load is what the instances have to do. Default: ten schedules, ten times a second.
	Load Load
	// Quiet says that Play does everything in moments in which nothing runs. Then no run may be repeated, and the lag of
	// slots that fell due while no instance led is measured apart.
	Quiet bool
	// Play does it. If it gets stuck, the result says so.
	Play func(context.Context, *Stage) error

	config string // what the config of the instances says besides
	skip   string // why it cannot be tried
}

// Load is the work of the instances on a stage: so many schedules, each due so often. The lease bounds how long a lost
// leader holds them up.
type Load struct {
	Schedules    int
	Every, Lease time.Duration
}

// suiteLoad has a short lease, so that a lost leader holds up little.
var suiteLoad = Load{Schedules: beats, Every: beatEvery, Lease: 2 * time.Second}

const (
	beats     = 10
	beatEvery = 100 * time.Millisecond
)

// roughly is how badly the clock of Redis may be known before it is said.
const roughly = 20 * time.Millisecond

// Play plays a scenario in a scratch namespace, judges it, and removes all that it made, also if ctx ends. Of Options it
// heeds those that concern one scenario. A promise that broke is in the result and is no error; with an error the result
// has at most the logs.
func Play(ctx context.Context, o Options, namespace string, c *Scenario) (*Result, error) {
	if c.skip != "" {
		return &Result{Scenario: c.Name, OK: true, Skipped: c.skip}, nil
	}
	began := time.Now()
	s, err := newStage(ctx, o, namespace, c)
	if err != nil {
		return &Result{}, err
	}
	over := false
	defer func() {
		if !over { // a panic is on its way
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

// judged plays a scenario and judges it. A scenario that does not get anywhere is a promise that broke, unless that is
// because Redis is gone or somebody interrupted.
func (s *Stage) judged(ctx context.Context) (*Result, error) {
	err := s.c.Play(ctx, s)
	if err == nil {
		err = s.finish(ctx)
	}
	if stop := s.hopeless(ctx, err); stop != nil {
		return &Result{Logs: s.lastWords()}, stop
	}
	s.endAll()
	e, gathered := s.evidence(ctx)
	if gathered != nil {
		return &Result{Logs: s.lastWords()}, errors.Join(err, gathered)
	}
	r := judge(e)
	r.Note = s.note
	if r.Note == "" && e.Slack > roughly {
		r.Note = fmt.Sprintf("what was early by less than %.0f ms was not noticed: the clock of Redis is known no better here", millis(e.Slack))
	}
	if err != nil {
		s.found = append(s.found, strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	r.OK = r.OK && len(s.found) == 0
	r.Wrong = append(s.found, r.Wrong...)
	if !r.OK {
		r.Logs = s.lastWords()
		if s.stall > s.c.Load.Lease/4 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("this machine let this program stand still for %.0f ms at a time: try again when it is less busy", millis(s.stall)))
		}
	}
	return r, nil
}

// hopeless is the error that ends the suite, if there is one.
func (s *Stage) hopeless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil || errors.Is(err, errStuck) {
		ctx, done := context.WithTimeout(ctx, removeTime)
		defer done()
		_, err = s.Queue().Now(ctx)
	}
	// What is left decides: Redis itself, or something that onbeat did.
	if store.Retryable(err) || errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrFull) || errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
