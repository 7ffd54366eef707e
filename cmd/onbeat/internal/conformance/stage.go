package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/schedule"
)

// patience is how long a wait for one thing may take. longest is how long the end of a scenario may take, on a machine however slow.
const (
	patience = 20 * time.Second
	longest  = 10 * time.Minute
)

// pollEvery is the time between two polls.
const pollEvery = 10 * time.Millisecond

// errStuck: a wait took too long.
var errStuck = errors.New("stuck")

// Stage is where one scenario is played: a namespace, a receiver, and instances. It is for one goroutine.
type Stage struct {
	*trial.Stage
	*Scratch
	o      Options
	c      Scenario
	clock  redisClock
	config string
	link   *link

	before     queue.Term // the first term
	takeovers  []trial.Takeover
	leaderless []trial.Span
	away       trial.Span
	empty      trial.Span
	until      time.Time
	tasks      []string
	note       string
	found      []string // broken promises that do not stop the scenario

	expired time.Time     // when the expiry of the keys was last set
	stall   time.Duration // the longest time in which this process did not run
}

func newStage(ctx context.Context, o Options, namespace string, c *Scenario) (s *Stage, err error) {
	s = &Stage{o: o, c: *c}
	s.c.Load = cmp.Or(c.Load, suiteLoad)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	dir, err := os.MkdirTemp("", "onbeat-conformance-")
	if err != nil {
		return s, err
	}
	if s.Stage, err = trial.NewStage(o.URL, namespace, dir); err != nil {
		return s, err
	}
	if s.Scratch, err = o.Open(namespace); err != nil {
		return s, err
	}
	if s.clock, err = readClock(ctx, s.Scratch); err != nil {
		return s, err
	}
	var beats []string
	for i := range s.c.Load.Schedules {
		beats = append(beats, s.Beat("beat", fmt.Sprintf("beat-%02d", i), s.c.Load.Every, "timeout: 5s"))
	}
	s.config, err = s.WriteConfig("onbeat.yaml", fmt.Sprintf("lease: %s\ndrain: 5s\nconcurrency: 20\n%s", s.c.Load.Lease, s.c.config), beats...)
	return s, err
}

// close removes everything, in any state.
func (s *Stage) close() error {
	if s.Stage != nil {
		s.Stage.Close()
		defer func() { _ = os.RemoveAll(s.Dir) }()
	}
	if s.link != nil {
		s.link.close()
	}
	if s.Scratch == nil {
		return nil
	}
	defer s.Scratch.Close()
	return s.remove()
}

// act reports what is being done.
func (s *Stage) act(format string, args ...any) {
	s.o.status.Act = fmt.Sprintf(format, args...)
	s.show()
}

func (s *Stage) show() {
	if s.o.Watch != nil {
		s.o.status.Arrived = s.Rec.Count()
		s.o.Watch(s.o.status)
	}
}

// Wait waits until ok returns true, and lets Options.Watch see the stage meanwhile. It polls many times a second, and gives
// up after a while.
func (s *Stage) Wait(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	began := time.Now()
	var last error
	for {
		call, done := context.WithTimeout(ctx, patience)
		yes, err := ok(call)
		done()
		if err == nil && yes {
			return nil
		}
		if err != nil {
			last = err
		}
		if i := slices.IndexFunc(s.Started, (*trial.Process).Crashed); i >= 0 {
			return fmt.Errorf("%w: %s ended by itself", errStuck, s.Started[i].Name)
		}
		if time.Since(began) > patience {
			return errors.Join(fmt.Errorf("%w: waited %s for %s", errStuck, patience, what), last)
		}
		s.show()
		s.expire(ctx)
		asleep := time.Now()
		select {
		case <-time.After(pollEvery):
			s.stall = max(s.stall, time.Since(asleep)-pollEvery)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// expire sets an expiry on the keys, each second, in case this process is killed. It is a precaution: if it fails, remove
// still removes them.
func (s *Stage) expire(ctx context.Context) {
	if s.Expire == nil || time.Since(s.expired) < time.Second {
		return
	}
	s.expired = time.Now()
	_ = s.Expire(ctx, KeysLive)
}

// pause waits a random time, so that the next action falls anywhere between slots.
func (s *Stage) pause(ctx context.Context, least, most time.Duration) error {
	select {
	case <-time.After(least + rand.N(most-least)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// took records that a release has taken over.
func (s *Stage) took(release string) {
	s.takeovers = append(s.takeovers, trial.Takeover{Release: release, From: s.clock.now().Add(s.clock.slack)})
}

// grow waits for n more arrivals of slots that are not due yet.
func (s *Stage) grow(ctx context.Context, n int) error {
	from := s.clock.now()
	return s.Wait(ctx, "the beat", func(context.Context) (bool, error) {
		fresh := 0
		for _, a := range s.Rec.Arrivals() {
			if a.Slot.After(from) {
				fresh++
			}
		}
		return fresh >= n, nil
	})
}

// finish waits until nothing waits, and stops what still runs. Up to that moment every slot must have arrived. A slow
// machine may take long: finish goes on while ever fewer tasks wait.
func (s *Stage) finish(ctx context.Context) error {
	s.act("waits until nothing waits")
	end := time.Now().Add(longest)
	for left := int64(math.MaxInt64); left > 0; {
		least := left
		err := s.Wait(ctx, "a moment in which nothing waits", func(ctx context.Context) (bool, error) {
			n, err := s.Activity.Counts(ctx)
			s.until, left = n.Now, n.Waiting+n.Running
			return left < least, err
		})
		if err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %d tasks still wait after %s", errStuck, left, longest)
		}
	}
	var left []*trial.Process
	for _, i := range s.Started {
		if !i.HasExited() {
			left = append(left, i)
		}
	}
	return s.Stop(ctx, left...)
}

// Arrivals returns what the receiver has seen so far.
func (s *Stage) Arrivals() []trial.Arrival { return s.Rec.Arrivals() }

// slack returns by how much the clock here may differ from that of Redis: the time of a call, and the drift since.
func (s *Stage) slack(ctx context.Context) (time.Duration, error) {
	end, err := readClock(ctx, s.Scratch)
	return max(s.clock.slack, end.slack) + (end.ahead - s.clock.ahead).Abs() + time.Millisecond, err
}

// evidence gathers the evidence when every process has ended.
func (s *Stage) evidence(ctx context.Context) (trial.Evidence, error) {
	e := trial.Evidence{
		Grids: map[string]schedule.Grid{}, Arrivals: s.Rec.Arrivals(), Until: s.until,
		Away: s.away, Empty: s.empty, Takeovers: s.takeovers, Tasks: s.tasks,
	}
	var err error
	if e.Slack, err = s.slack(ctx); err != nil {
		return e, err
	}
	if e.Setbacks, err = s.setbacks(ctx); err != nil {
		return e, err
	}
	e.Quiet, e.Leaderless, e.Follow = s.c.Quiet, s.leaderless, s.c.Load.Lease*3/2+s.stall
	if s.o.Receive != nil {
		e.Arrivals = s.o.Receive(e.Arrivals)
	}
	for i := range e.Arrivals {
		e.Arrivals[i].At = s.clock.of(e.Arrivals[i].At)
	}
	list, err := s.Schedules.List(ctx)
	if err != nil {
		return e, err
	}
	for i := range list.Items {
		if e.Grids[list.Items[i].Name], err = list.Items[i].Grid(); err != nil {
			return e, err
		}
	}
	verdict, err := s.Activity.Audit(ctx, audit.Options{})
	e.Reports = verdict.Schedules
	return e, err
}

// manyEvents is more than one scenario makes, and is how many Redis keeps.
const manyEvents = 10_000

// setbacks counts what may have repeated a run: instances that were lost, and runs that failed.
func (s *Stage) setbacks(ctx context.Context) (int64, error) {
	counts, err := s.Activity.Counts(ctx)
	if err != nil {
		return 0, err
	}
	n := counts.Retried
	events, err := s.Activity.Events(ctx, admin.EventQuery{Limit: manyEvents})
	for _, e := range events.Items {
		if e.Event == "lost" {
			n++
		}
	}
	return n, err
}
