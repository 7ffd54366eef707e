package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/task"
)

// scenarios returns all scenarios, in order.
func scenarios(o Options) []*Scenario {
	cannotCut := ""
	if _, _, ok := linkable(o.URL); !ok {
		cannotCut = "the suite can cut the connection of a redis:// URL only"
	}
	return []*Scenario{
		{Name: "rolling updates", Play: rollouts(o.Rollouts, 1)},
		{Name: "rolling updates of 3 replicas", config: "consume: release\n", Play: rollouts((o.Rollouts+1)/2, 3)},
		{Name: "leader killed", Play: killed},
		{Name: "leader frozen past its lease", Play: frozen},
		{Name: "leader cut off from Redis", skip: cannotCut, Play: cutOff},
		{Name: "everything stopped and started", Play: allStopped},
		{Name: "a client that floods", Play: flooded},
	}
}

// settled is how many beats show that all is well again: about a second of them.
const settled = beats * 10

// rollouts replaces all replicas by those of a new release, again and again, at random moments around the slots.
func rollouts(n, replicas int) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		var old []*trial.Process
		for i := range n + 1 {
			release := fmt.Sprintf("r%d", i)
			s.act("rollout %d of %d", i, n)
			next, err := s.startAll(release, replicas)
			if err != nil {
				return err
			}
			if err := s.Leads(ctx, next...); err != nil {
				return err
			}
			s.took(release)
			if err := s.pause(ctx, 0, 2*beatEvery); err != nil {
				return err
			}
			if err := s.Stop(ctx, old...); err != nil {
				return err
			}
			if err := s.pause(ctx, beatEvery, 3*beatEvery); err != nil {
				return err
			}
			old = next
		}
		return s.grow(ctx, settled)
	}
}

// pair starts an instance that stands by, and then one that leads.
func (s *Stage) pair(ctx context.Context, url string) (heir, leader *trial.Process, err error) {
	s.act("two instances start")
	if heir, err = s.Start("heir", "r1"); err != nil {
		return nil, nil, err
	}
	first, err := s.termOf(ctx, heir)
	if err != nil {
		return nil, nil, err
	}
	if leader, err = s.startOn(url, "leader", "r2"); err != nil {
		return nil, nil, err
	}
	if err := s.Leads(ctx, leader); err != nil {
		return nil, nil, err
	}
	if err := s.deposed(ctx, first); err != nil {
		return nil, nil, err
	}
	s.before = first
	return heir, leader, s.grow(ctx, settled)
}

// killed: the leader ends without a goodbye or a handover.
func killed(ctx context.Context, s *Stage) error {
	heir, leader, err := s.pair(ctx, s.o.URL)
	if err != nil {
		return err
	}
	s.act("SIGKILL to the leader; another takes over")
	if err := s.Depose(ctx, leader, heir, trial.SigKill); err != nil {
		return err
	}
	if took := s.leaderless[0].To.Sub(s.leaderless[0].From); took > s.c.Load.Lease/2 {
		s.note = "nobody saw before the lease ended that the leader was dead: may instances call PUBSUB on this Redis, with no proxy between?"
	}
	return s.grow(ctx, settled)
}

// frozen: the leader does not notice that time passes, and wakes in the belief that it leads.
func frozen(ctx context.Context, s *Stage) error {
	heir, leader, err := s.pair(ctx, s.o.URL)
	if err != nil {
		return err
	}
	second, err := s.termOf(ctx, leader)
	if err != nil {
		return err
	}
	s.act("SIGSTOP to the leader; another takes over")
	if err := s.Depose(ctx, leader, heir, trial.SigStop); err != nil {
		return err
	}
	s.took("r1")
	for _, over := range []queue.Term{s.before, second} { // of the heir, which leads again, and of the frozen instance
		if err := s.deposed(ctx, over); err != nil {
			return err
		}
	}
	if err := s.grow(ctx, settled); err != nil {
		return err
	}
	s.act("its lease runs out")
	if err := s.Lost(ctx, leader); err != nil {
		return err
	}
	s.act("SIGCONT: it wakes, and its claims are void")
	if err := leader.Signal(trial.SigCont); err != nil {
		return err
	}
	return s.leadsAgain(ctx, leader, "r2")
}

// cutOff: the leader goes on, and its connections to Redis stay open, but no bytes pass.
func cutOff(ctx context.Context, s *Stage) error {
	addr, through, _ := linkable(s.o.URL)
	link, err := newLink(addr)
	if err != nil {
		return err
	}
	s.link = link
	heir, leader, err := s.pair(ctx, through(link.addr()))
	if err != nil {
		return err
	}
	s.act("the leader's connection to Redis goes silent; another takes over")
	link.cut()
	if err := s.Leads(ctx, heir); err != nil {
		return err
	}
	s.took("r1")
	if err := s.grow(ctx, settled); err != nil {
		return err
	}
	s.act("the connection is mended: the newest leads again")
	link.mend()
	return s.leadsAgain(ctx, leader, "r2")
}

// outage is how long no instance is there.
const outage = 1500 * time.Millisecond

// allStopped: of the slots of a time without an instance the latest runs, by the policy of the schedules (missed: once).
func allStopped(ctx context.Context, s *Stage) error {
	s.act("one instance starts")
	first, err := s.Start("first", "r1")
	if err != nil {
		return err
	}
	if err := s.grow(ctx, settled); err != nil {
		return err
	}
	s.act("no instance runs for %s", outage)
	s.away.From = s.clock.now().Add(-s.clock.slack - time.Millisecond)
	if err := s.Stop(ctx, first); err != nil {
		return err
	}
	s.empty.From = s.clock.now().Add(s.clock.slack)
	if err := s.pause(ctx, outage, outage+beatEvery); err != nil {
		return err
	}
	s.empty.To = s.clock.now().Add(-s.clock.slack)
	second, err := s.Start("second", "r1")
	if err != nil {
		return err
	}
	if err := s.Leads(ctx, second); err != nil {
		return err
	}
	if err := s.grow(ctx, 1); err != nil { // it drops slots up to when it began to lead, and then runs some
		return err
	}
	s.away.To = s.clock.now().Add(s.clock.slack + time.Millisecond)
	return s.grow(ctx, settled)
}

// flood is how many tasks come at once, in how many portions.
const (
	flood    = 2000
	portions = 10
)

// flooded: a client enqueues far more tasks than the workers can take at once, and the beat goes on.
func flooded(ctx context.Context, s *Stage) error {
	s.act("one instance starts")
	if _, err := s.Start("first", "r1"); err != nil {
		return err
	}
	if err := s.grow(ctx, settled/2); err != nil {
		return err
	}
	s.note = "without SCRIPT FLUSH, which would affect other users of this Redis: pass --script-flush to allow it"
	for i := range portions {
		s.act("%d tasks at once", flood)
		if err := s.flood(ctx, i*flood/portions, (i+1)*flood/portions); err != nil {
			return err
		}
		if s.o.FlushScripts {
			s.note = "with SCRIPT FLUSH under load"
			if err := s.Scratch.FlushScripts(ctx); err != nil {
				s.note = "without SCRIPT FLUSH: " + err.Error()
			}
		}
		if err := s.pause(ctx, 0, beatEvery); err != nil {
			return err
		}
	}
	return s.grow(ctx, settled)
}

// flood enqueues a portion. While Redis does not answer, it retries, which the IDs make safe.
func (s *Stage) flood(ctx context.Context, from, to int) error {
	var list []*task.Task
	for i := from; i < to; i++ {
		id := fmt.Sprintf("flood-%04d", i)
		s.tasks = append(s.tasks, id)
		list = append(list, task.New("http", map[string]any{"url": s.Rec.URL("flood")}, task.ID(id), task.WithPriority(task.Low)))
	}
	return s.Wait(ctx, "an answer to the enqueue call", func(ctx context.Context) (bool, error) {
		_, err := s.Tasks.Enqueue(ctx, list)
		return err == nil, err
	})
}
