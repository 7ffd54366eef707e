package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/trial"
)

// Instance is an instance on a stage: a process of this program.
type Instance struct {
	*trial.Process
	name string
	told syscall.Signal
}

// Start starts an instance of a release. Each start needs a new name, under which its log is kept.
func (s *Stage) Start(name, release string) (*Instance, error) {
	return s.startOn(s.o.URL, name, release)
}

func (s *Stage) startOn(url, name, release string) (*Instance, error) {
	p, err := trial.Start(name, s.dir, s.logOf(name), []string{"ONBEAT_REDIS_URL=" + url}, "serve", "--config", s.config(), "--release", release)
	if err != nil {
		return nil, err
	}
	i := &Instance{Process: p, name: name}
	s.instances = append(s.instances, i)
	return i, nil
}

// startAll starts several instances of one release.
func (s *Stage) startAll(release string, replicas int) (list []*Instance, err error) {
	for n := range replicas {
		i, err := s.Start(fmt.Sprintf("%s-%d", release, n+1), release)
		if err != nil {
			return list, err
		}
		list = append(list, i)
	}
	return list, nil
}

// Signal sends the instance a signal. If the instance ends without SIGTERM or SIGKILL from here, the scenario fails.
func (i *Instance) Signal(sig syscall.Signal) error {
	i.told = sig
	return i.Process.Signal(sig)
}

// Told returns the last signal that the instance was sent, or 0.
func (i *Instance) Told() syscall.Signal { return i.told }

// crashed reports whether the instance ended on its own.
func (i *Instance) crashed() bool {
	return i.HasExited() && i.told != trial.SigTerm && i.told != trial.SigKill
}

// Stop sends SIGTERM to instances in order, and waits until they have ended.
func (s *Stage) Stop(ctx context.Context, list ...*Instance) error {
	for _, i := range list {
		if err := i.Signal(trial.SigTerm); err != nil {
			return err
		}
	}
	err := s.Wait(ctx, "the end of the stopped instances", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(list, func(i *Instance) bool { return !i.HasExited() }), nil
	})
	if err != nil {
		return err
	}
	for _, i := range list { // 1 is not a crash: Redis was away when the instance left
		if code := i.ExitCode(); code != 0 && code != 1 {
			s.found = append(s.found, fmt.Sprintf("%s was told to end, and crashed with exit code %d", i.name, code))
		}
	}
	return nil
}

// Depose sends the leader a signal, and waits until its heir leads. If the signal ends the leader, Depose waits for that
// too.
func (s *Stage) Depose(ctx context.Context, leader, heir *Instance, sig syscall.Signal) error {
	from := s.clock.now()
	if err := leader.Signal(sig); err != nil {
		return err
	}
	err := s.Leads(ctx, heir)
	s.leaderless = append(s.leaderless, span{from, s.clock.now()})
	if err != nil || sig == trial.SigStop {
		return err
	}
	return s.Wait(ctx, "the end of "+leader.name, func(context.Context) (bool, error) { return leader.HasExited(), nil })
}

// Lost waits until the lease of an instance that cannot renew it is over, so that its claims are void.
func (s *Stage) Lost(ctx context.Context, i *Instance) error {
	return s.Wait(ctx, "the end of the lease of "+i.name, func(ctx context.Context) (bool, error) {
		there, err := s.Instances.List(ctx)
		return !slices.ContainsFunc(there.Items, func(x admin.Instance) bool { return x.PID == i.PID() }), err
	})
}

// endAll kills all instances that still run.
func (s *Stage) endAll() {
	for _, i := range s.instances {
		i.Kill()
	}
}

// Leads waits until Redis reports that one of these instances leads, and that all of them are ready.
func (s *Stage) Leads(ctx context.Context, list ...*Instance) error {
	return s.Wait(ctx, list[0].name+" in the lead", func(ctx context.Context) (bool, error) {
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

func (s *Stage) logOf(name string) string { return filepath.Join(s.dir, name+".log") }

// lastLines is how many lines of each log are kept of a scenario that went wrong.
const lastLines = 20

func (s *Stage) lastWords() (words []string) {
	for _, i := range s.instances {
		text, err := os.ReadFile(s.logOf(i.name))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[max(0, len(lines)-lastLines):] {
			words = append(words, i.name+": "+line)
		}
	}
	return words
}
