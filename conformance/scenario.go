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

// scenario is one thing to try.
type scenario struct {
	name string
	head string // of the config
	skip string // why it cannot be tried
	play func(context.Context, *stage) error
}

// roughly is how badly the clock of Redis may be known before it is said.
const roughly = 20 * time.Millisecond

func (c *scenario) run(ctx context.Context, o Options, namespace string, status Status) (*Result, error) {
	if c.skip != "" {
		return &Result{Scenario: c.name, OK: true, Skipped: c.skip}, nil
	}
	began := time.Now()
	s, err := newStage(ctx, o, namespace, c, status)
	if err != nil {
		return nil, err
	}
	over := false
	defer func() {
		if !over { // a panic is on its way
			_ = s.close()
		}
	}()
	r, err := s.judged(ctx, c.play)
	over = true
	if closed := s.close(); closed != nil {
		return nil, errors.Join(err, fmt.Errorf("%w: %s: %w", ErrLeft, namespace, closed))
	}
	if err != nil {
		return nil, err
	}
	r.Scenario, r.Seconds = c.name, seconds(time.Since(began))
	return r, nil
}

// judged plays a scenario and judges it. A scenario that does not get anywhere is a promise that broke, unless that is
// because Redis is gone or somebody interrupted.
func (s *stage) judged(ctx context.Context, play func(context.Context, *stage) error) (*Result, error) {
	err := play(ctx, s)
	if err == nil {
		err = s.finish(ctx)
	}
	if stop := s.hopeless(ctx, err); stop != nil {
		return nil, stop
	}
	s.endAll()
	e, gathered := s.evidence(ctx)
	if gathered != nil {
		return nil, errors.Join(err, gathered)
	}
	r := Judge(e)
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
		if s.stall > lease/4 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("this machine let the suite stand still for %.0f ms at a time: try again when it is less busy", millis(s.stall)))
		}
	}
	return r, nil
}

// hopeless is the error that ends the suite, if there is one.
func (s *stage) hopeless(ctx context.Context, err error) error {
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
