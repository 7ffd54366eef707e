package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/trial"
)

// termOf returns the term in which an instance leads now.
func (s *Stage) termOf(ctx context.Context, a *trial.Process) (term queue.Term, err error) {
	err = s.Wait(ctx, a.Name+" in the lead", func(ctx context.Context) (bool, error) {
		there, err := s.Instances.List(ctx)
		i := slices.IndexFunc(there.Items, func(i admin.Instance) bool { return i.PID == a.PID() && i.Leader })
		if i < 0 {
			return false, err
		}
		term = queue.Term{Instance: there.Items[i].ID, Gen: there.Items[i].Generation, Epoch: there.Items[i].Epoch}
		return true, nil
	})
	return term, err
}

// deposed sends a call that the leader of a past term may still have under way: a step of a schedule as it is stored now.
// So only the term tells that Redis must refuse it. If Redis accepted it, nothing would change.
func (s *Stage) deposed(ctx context.Context, term queue.Term) error {
	const name = "beat-00"
	var accepted bool
	err := s.Wait(ctx, "an answer to a leader that was deposed", func(ctx context.Context) (bool, error) {
		is, err := s.Queue.Schedule(ctx, name)
		if err != nil {
			return false, err
		}
		_, _, _, err = s.Queue.Advance(ctx, term, []queue.Step{{Name: name, Expect: is.Last, Becomes: is.Last}})
		accepted = err == nil
		if errors.Is(err, queue.ErrNotLeader) || errors.Is(err, queue.ErrFenced) {
			return true, nil
		}
		return accepted, err
	})
	if err == nil && accepted {
		s.found = append(s.found, fmt.Sprintf("%s could push slots in epoch %d, which is over", term.Instance, term.Epoch))
	}
	return err
}

// leadsAgain waits until an instance leads and the beat goes on. Meanwhile no older release may work, unless this instance
// loses the lead once more, as on a machine that is too busy to run it.
func (s *Stage) leadsAgain(ctx context.Context, a *trial.Process, release string) error {
	term, err := s.termOf(ctx, a)
	if err != nil {
		return err
	}
	from := s.clock.now().Add(s.clock.slack)
	if err := s.grow(ctx, settled); err != nil {
		return err
	}
	still, err := s.termOf(ctx, a)
	if err == nil && still == term {
		s.takeovers = append(s.takeovers, trial.Takeover{Release: release, From: from})
	}
	return err
}
