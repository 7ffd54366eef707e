package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onbeat/onbeat/audit"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
)

// The load: so many schedules, each due so often. The lease is short, so that a lost leader holds up little.
const (
	beats     = 10
	beatEvery = 100 * time.Millisecond
	lease     = 2 * time.Second
)

// patience is how long any one thing may take.
const patience = 20 * time.Second

// pollEvery is how often it is asked for.
const pollEvery = 10 * time.Millisecond

// errStuck: something that was to come did not.
var errStuck = errors.New("stuck")

// stage is where one scenario is played: a namespace, a receiver, and processes.
type stage struct {
	*Scratch
	o         Options
	namespace string
	status    Status
	rec       *trial.Recorder
	clock     redisClock
	dir       string
	link      *link
	actors    []*actor

	before queue.Term // the first there was
	terms  []Term
	away   Span
	empty  Span
	until  time.Time
	tasks  []string
	note   string
	found  []string // what broke and stops nothing

	expired time.Time     // when the keys were last told to go by themselves
	stall   time.Duration // the longest time that this process did not get to run
}

func newStage(ctx context.Context, o Options, namespace string, c *scenario, status Status) (s *stage, err error) {
	s = &stage{o: o, namespace: namespace, status: status}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "onbeat-conformance-"); err != nil {
		return s, err
	}
	if s.rec, err = trial.NewRecorder(); err != nil {
		return s, err
	}
	if s.Scratch, err = o.Open(namespace); err != nil {
		return s, err
	}
	if s.clock, err = readClock(ctx, s.Scratch); err != nil {
		return s, err
	}
	return s, os.WriteFile(s.config(), []byte(s.yaml(c.head)), 0o600)
}

func (s *stage) config() string { return filepath.Join(s.dir, "onbeat.yaml") }

func (s *stage) yaml(head string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace: %s\nlease: %s\ndrain: 5s\nconcurrency: 20\n%sschedules:\n", s.namespace, lease, head)
	for i := range beats {
		fmt.Fprintf(&b, "  - {name: beat-%02d, every: %s, task: http, payload: {url: %q, timeout: 5s}}\n", i, beatEvery, s.rec.URL("beat"))
	}
	return b.String()
}

// close takes everything away, in whatever state it is.
func (s *stage) close() error {
	s.endAll()
	if s.link != nil {
		s.link.close()
	}
	if s.rec != nil {
		s.rec.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	if s.Scratch == nil {
		return nil
	}
	defer s.Close()
	return s.remove()
}

// act says what is being done.
func (s *stage) act(format string, args ...any) {
	s.status.Act = fmt.Sprintf(format, args...)
	s.show()
}

func (s *stage) show() {
	if s.o.Watch != nil {
		s.status.Arrived = s.rec.Count()
		s.o.Watch(s.status)
	}
}

// wait waits for something to be true.
func (s *stage) wait(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
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
		for _, a := range s.actors {
			if a.HasExited() && !a.leaving {
				return fmt.Errorf("%w: %s ended by itself", errStuck, a.name)
			}
		}
		if time.Since(began) > patience {
			return errors.Join(fmt.Errorf("%w: %s did not come within %s", errStuck, what, patience), last)
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

// expire sees to it, each second, that the keys go by themselves if this process is killed. It is a precaution: if it
// fails, remove still removes them.
func (s *stage) expire(ctx context.Context) {
	if time.Since(s.expired) < time.Second {
		return
	}
	s.expired = time.Now()
	_ = s.Expire(ctx, KeysLive)
}

// pause lets a random time go by, so that what follows falls anywhere between slots.
func (s *stage) pause(ctx context.Context, least, most time.Duration) error {
	select {
	case <-time.After(least + rand.N(most-least)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// took notes that a release has taken over.
func (s *stage) took(release string) {
	s.terms = append(s.terms, Term{release, s.clock.now().Add(s.clock.slack)})
}

// grow waits for so many more arrivals of slots that are not due yet.
func (s *stage) grow(ctx context.Context, n int) error {
	from := s.clock.now()
	return s.wait(ctx, "the beat", func(context.Context) (bool, error) {
		fresh := 0
		for _, a := range s.rec.Arrivals() {
			if a.Slot.After(from) {
				fresh++
			}
		}
		return fresh >= n, nil
	})
}

// finish waits for a moment in which nothing is overdue, and stops what still runs. Up to that moment every slot must
// have arrived.
func (s *stage) finish(ctx context.Context) error {
	s.act("waits for a moment in which nothing is overdue")
	err := s.wait(ctx, "a moment in which nothing is overdue", func(ctx context.Context) (bool, error) {
		n, err := s.Queue().Counts(ctx)
		s.until = n.Now
		return n.Overdue == 0 && n.Running == 0, err
	})
	if err != nil {
		return err
	}
	var left []*actor
	for _, a := range s.actors {
		if !a.HasExited() {
			left = append(left, a)
		}
	}
	return s.stop(ctx, left...)
}

// slack is by how much the clock here may be off that of Redis: a call's way, and what they went apart meanwhile.
func (s *stage) slack(ctx context.Context) (time.Duration, error) {
	end, err := readClock(ctx, s.Scratch)
	return max(s.clock.slack, end.slack) + (end.ahead - s.clock.ahead).Abs() + time.Millisecond, err
}

// evidence gathers what there is when every process has ended.
func (s *stage) evidence(ctx context.Context) (Evidence, error) {
	e := Evidence{
		Grids: map[string]schedule.Grid{}, Arrivals: s.rec.Arrivals(), Until: s.until,
		Away: s.away, Empty: s.empty, Terms: s.terms, Tasks: s.tasks,
	}
	var err error
	if e.Slack, err = s.slack(ctx); err != nil {
		return e, err
	}
	if e.Setbacks, err = s.setbacks(ctx); err != nil {
		return e, err
	}
	if s.o.Receive != nil {
		e.Arrivals = s.o.Receive(e.Arrivals)
	}
	for i := range e.Arrivals {
		e.Arrivals[i].At = s.clock.of(e.Arrivals[i].At)
	}
	list, err := s.Schedules().List(ctx)
	if err != nil {
		return e, err
	}
	for i := range list {
		if e.Grids[list[i].Schedule.Name], err = list[i].Grid(); err != nil {
			return e, err
		}
	}
	e.Reports, err = audit.Run(ctx, s.Queue(), s.Schedules(), audit.Options{})
	return e, err
}

// manyEvents is more than one scenario makes, and how many are kept.
const manyEvents = 10_000

// setbacks counts what may have made a task run again: instances that were lost, and runs that failed.
func (s *stage) setbacks(ctx context.Context) (int64, error) {
	counts, err := s.Queue().Counts(ctx)
	if err != nil {
		return 0, err
	}
	n := counts.Retried
	events, err := s.Queue().Events(ctx, time.Time{}, manyEvents)
	for _, e := range events {
		if e.Kind == "lost" {
			n++
		}
	}
	return n, err
}
