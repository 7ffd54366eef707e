package conformance

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/trial"
)

// Start starts an instance of a release: a process of this program. If one ends without SIGTERM or SIGKILL from here, the
// scenario fails.
func (s *Stage) Start(name, release string) (*trial.Process, error) {
	return s.startOn(s.o.URL, name, release)
}

func (s *Stage) startOn(url, name, release string) (*trial.Process, error) {
	return s.Stage.Start(name, s.config, trial.Program{Args: []string{"--release", release}, Env: []string{"ONBEAT_REDIS_URL=" + url}, Dir: s.Dir})
}

// startAll starts several instances of one release.
func (s *Stage) startAll(release string, replicas int) (list []*trial.Process, err error) {
	for n := range replicas {
		i, err := s.Start(fmt.Sprintf("%s-%d", release, n+1), release)
		if err != nil {
			return list, err
		}
		list = append(list, i)
	}
	return list, nil
}

// Stop sends SIGTERM to instances in order, and waits until they have ended.
func (s *Stage) Stop(ctx context.Context, list ...*trial.Process) error {
	for _, i := range list {
		if err := i.Signal(trial.SigTerm); err != nil {
			return err
		}
	}
	err := s.Wait(ctx, "the end of the stopped instances", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(list, func(i *trial.Process) bool { return !i.HasExited() }), nil
	})
	if err != nil {
		return err
	}
	for _, i := range list { // 1 is not a crash: Redis was away when the instance left
		if code := i.ExitCode(); code != 0 && code != 1 {
			s.found = append(s.found, fmt.Sprintf("%s was told to end, and crashed with exit code %d", i.Name, code))
		}
	}
	return nil
}

// Depose sends the leader a signal, and waits until its heir leads. If the signal ends the leader, Depose waits for that
// too.
func (s *Stage) Depose(ctx context.Context, leader, heir *trial.Process, sig syscall.Signal) error {
	from := s.clock.now()
	if err := leader.Signal(sig); err != nil {
		return err
	}
	err := s.Leads(ctx, heir)
	s.leaderless = append(s.leaderless, trial.Span{From: from, To: s.clock.now()})
	if err != nil || sig == trial.SigStop {
		return err
	}
	return s.Wait(ctx, "the end of "+leader.Name, func(context.Context) (bool, error) { return leader.HasExited(), nil })
}

// Lost waits until the lease of an instance that cannot renew it is over, so that its claims are void.
func (s *Stage) Lost(ctx context.Context, i *trial.Process) error {
	return s.Wait(ctx, "the end of the lease of "+i.Name, func(ctx context.Context) (bool, error) {
		there, err := s.Instances.List(ctx)
		return !slices.ContainsFunc(there.Items, func(x admin.Instance) bool { return x.PID == i.PID() }), err
	})
}

// Leads waits until Redis reports that one of these instances leads, and that all of them are ready.
func (s *Stage) Leads(ctx context.Context, list ...*trial.Process) error {
	return s.Wait(ctx, list[0].Name+" in the lead", func(ctx context.Context) (bool, error) {
		there, err := s.Instances.List(ctx)
		ready, leads := 0, false
		for _, one := range list {
			at := slices.IndexFunc(there.Items, func(i admin.Instance) bool { return i.PID == one.PID() })
			if at >= 0 && there.Items[at].State == "ready" {
				ready++
				leads = leads || there.Items[at].Leader
			}
		}
		return leads && ready == len(list), err
	})
}
