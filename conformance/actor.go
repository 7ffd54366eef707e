package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/trial"
)

// actor is an instance.
type actor struct {
	*trial.Process
	name    string
	leaving bool // it was told to end
}

// start starts an instance of a release.
func (s *stage) start(name, release string) (*actor, error) { return s.startOn(s.o.URL, name, release) }

func (s *stage) startOn(url, name, release string) (*actor, error) {
	p, err := trial.Start(name, s.dir, s.logOf(name), []string{"ONBEAT_REDIS_URL=" + url}, "serve", "--config", s.config(), "--release", release)
	if err != nil {
		return nil, err
	}
	a := &actor{Process: p, name: name}
	s.actors = append(s.actors, a)
	return a, nil
}

// startAll starts some of one release.
func (s *stage) startAll(release string, replicas int) (list []*actor, err error) {
	for i := range replicas {
		a, err := s.start(fmt.Sprintf("%s-%d", release, i+1), release)
		if err != nil {
			return list, err
		}
		list = append(list, a)
	}
	return list, nil
}

// stop tells instances to end in order, and waits until they have.
func (s *stage) stop(ctx context.Context, list ...*actor) error {
	for _, a := range list {
		a.leaving = true
		if err := a.Signal(trial.SigTerm); err != nil {
			return err
		}
	}
	err := s.wait(ctx, "the end of what was stopped", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(list, func(a *actor) bool { return !a.HasExited() }), nil
	})
	if err != nil {
		return err
	}
	for _, a := range list { // 1 is no crash: Redis was not there to be told
		if code := a.ExitCode(); code != 0 && code != 1 {
			s.found = append(s.found, fmt.Sprintf("%s was told to end, and crashed with exit code %d", a.name, code))
		}
	}
	return nil
}

// endAll kills what still runs.
func (s *stage) endAll() {
	for _, a := range s.actors {
		a.Kill()
	}
}

// leads waits until Redis says that one of these instances leads, and all of them are ready.
func (s *stage) leads(ctx context.Context, list ...*actor) error {
	return s.wait(ctx, list[0].name+" in the lead", func(ctx context.Context) (bool, error) {
		there, err := s.Instances().List(ctx)
		ready, leads := 0, false
		for _, a := range list {
			i := slices.IndexFunc(there, func(i instance.Info) bool { return i.PID == a.PID() })
			if i >= 0 && there[i].State == "ready" {
				ready++
				leads = leads || there[i].Leader
			}
		}
		return leads && ready == len(list), err
	})
}

func (s *stage) logOf(name string) string { return filepath.Join(s.dir, name+".log") }

// lastLines is how much of each log is kept of a scenario that went wrong.
const lastLines = 20

func (s *stage) lastWords() (words []string) {
	for _, a := range s.actors {
		text, err := os.ReadFile(s.logOf(a.name))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[max(0, len(lines)-lastLines):] {
			words = append(words, a.name+": "+line)
		}
	}
	return words
}
