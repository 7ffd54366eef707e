package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/task"
)

// Options say what to try, and where.
type Options struct {
	// URL is that of Redis. The processes get it through their environment, which only their user can read.
	URL string
	// Open opens a scratch namespace there.
	Open func(namespace string) (*Scratch, error)
	// Rollouts is how many rolling updates to play. Half as many are played with three replicas.
	Rollouts int
	// FlushScripts lets the suite flush the script cache of Redis under load. Other programs share that cache: a program
	// that does not load its scripts again must be restarted.
	FlushScripts bool
	// Only names the scenarios to try. Empty: all.
	Only []string
	// Receive, if not nil, changes what the receiver saw before it is judged. Tests use it to break a promise, and check
	// that the judge notices.
	Receive func([]trial.Arrival) []trial.Arrival
	// Watch, if not nil, is called many times a second with the status, by the goroutine that plays.
	Watch func(Status)

	status Status
}

// Status says how far the suite has come.
type Status struct {
	Number, Of int // of the scenario, from 1
	Scenario   string
	Act        string // what is being done
	Arrived    int
}

// Report is the outcome of all scenarios.
type Report struct {
	OK        bool            `json:"ok"`
	Namespace string          `json:"namespace"` // the beginning of the scratch namespaces' names
	Seconds   float64         `json:"seconds"`
	Scenarios []*trial.Result `json:"scenarios"`
}

// MaxRollouts bounds Options.Rollouts: about twenty minutes.
const MaxRollouts = 1000

// Estimate returns about how long a run takes.
func Estimate(rollouts int) time.Duration {
	return 22*time.Second + time.Duration(rollouts)*1300*time.Millisecond
}

// ErrLeft: a scratch namespace could not be removed.
var ErrLeft = errors.New("a scratch namespace is left behind")

// ErrUnsupported: this system cannot stop, kill and freeze processes.
var ErrUnsupported = errors.New("the suite stops, kills and freezes processes by signals, which this system lacks")

// Run carries out every scenario, one after the other, and removes all that it made, even if ctx ends. A broken promise is
// in the report and is not an error; an error says that the suite could not go on.
func Run(ctx context.Context, o Options) (*Report, error) {
	if !trial.CanSignal {
		return nil, ErrUnsupported
	}
	all, err := chosen(o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	report := &Report{Namespace: "conformance-" + strings.ToLower(rand.Text()[:12])}
	if err := probe(ctx, o, report.Namespace+"-probe"); err != nil {
		return nil, err
	}
	for i, c := range all {
		o.status = Status{Number: i + 1, Of: len(all), Scenario: c.Name}
		result, err := Play(ctx, o, fmt.Sprintf("%s-%d", report.Namespace, i+1), c)
		if err != nil {
			return report, err
		}
		report.Scenarios = append(report.Scenarios, result)
	}
	report.OK = !slices.ContainsFunc(report.Scenarios, func(r *trial.Result) bool { return !r.OK })
	report.Seconds = seconds(time.Since(began))
	return report, nil
}

// chosen returns the scenarios to try. Choosing none is an error: it would report that all is well.
func chosen(o Options) ([]*Scenario, error) {
	if o.Rollouts < 1 || o.Rollouts > MaxRollouts {
		return nil, fmt.Errorf("%d rollouts: out of range 1 to %d", o.Rollouts, MaxRollouts)
	}
	all := scenarios(o)
	if len(o.Only) == 0 {
		return all, nil
	}
	var list []*Scenario
	for _, name := range o.Only {
		i := slices.IndexFunc(all, func(c *Scenario) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// probe writes one task and removes it, so that a refusal by Redis is reported before anything starts.
func probe(ctx context.Context, o Options, namespace string) error {
	s, err := o.Open(namespace)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Tasks.Enqueue(ctx, []*task.Task{task.New("echo", nil)})
	if removed := s.remove(); err == nil {
		err = removed
	}
	return err
}
