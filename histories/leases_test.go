package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/testredis"
)

// leaseTime is the lease of these instances. It is short, so that many leases run out in a run.
const leaseTime = 150 * time.Millisecond

const (
	fenced    = "fenced"
	notLeader = "not the leader"
)

// The registry: which instance leads, in which epoch, and what leaders do. Instances come, go, pause for longer than their
// lease, suspect a leader that is silent, and act for terms that are over.
func TestLeases_areLinearizable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.hold("leases", size(2, 60), leasesRun, leasesSpec.model())
}

// leasesRun is one run of some instances in a namespace of its own.
func leasesRun(s *stage) *history {
	s.Helper()
	h := newHistory()
	p := queue.Partition{Namespace: testredis.Namespace(s)}
	last := queue.Last{Rev: 1}.String()
	if err := s.admin.HSet(s.Context(), p.Keys().Last, scheduleName, last).Err(); err != nil {
		s.Fatal(err)
	}
	var all [crowd]*candidate
	var channels []string
	for i := range all {
		all[i] = s.candidate(h, p, i)
		channels = append(channels, p.Keys().Wake+":"+name(i))
	}
	// Whoever is heard may look out for the leader; see instance/scripts/heartbeat.lua.
	heard := s.admin.Subscribe(s.Context(), channels...)
	defer func() { _ = heard.Close() }()
	heard.Channel()
	s.run(time.Second, true, crowd, func(ctx context.Context, i int, r *rand.Rand) { all[i].live(ctx, r) })
	return h
}

const scheduleName = "beat"

// candidate is an instance: its knowledge, true or not.
type candidate struct {
	h    *history
	who  int
	reg  *instance.Registry
	q    *queue.Queue
	gen  int64
	term []int64 // the epochs in which this generation led, by the replies
	last string  // the schedule's last run, as it was read
	step int

	leads int64 // the generation that leads, as the candidate last heard
	seen  instance.Seen
}

func (s *stage) candidate(h *history, p queue.Partition, i int) *candidate {
	s.Helper()
	rdb := s.client()
	reg, err := instance.NewRegistry(rdb, p)
	if err != nil {
		s.Fatal(err)
	}
	q, err := queue.New(rdb, p, queue.Caps{})
	if err != nil {
		s.Fatal(err)
	}
	return &candidate{h: h, who: i, reg: reg, q: q}
}

func releaseOf(who int) string { return fmt.Sprint("v", who%2) }

func name(who int) string { return fmt.Sprint("i", who) }

// live makes one call after the other until the context ends, mostly as a real instance would.
func (c *candidate) live(ctx context.Context, r *rand.Rand) {
	for pause(ctx, rand.N(12*time.Millisecond)) {
		if r.IntN(25) == 0 && !pause(ctx, leaseTime/2+rand.N(leaseTime)) {
			return
		}
		switch n := r.IntN(100); {
		case c.gen == 0 || n < 2:
			if c.join(); c.gen != 0 && r.IntN(5) > 0 {
				c.ready()
			}
		case n < 5:
			c.ready()
		case n < 45:
			c.call("beat", func(ctx context.Context, id string, gen int64) (instance.View, error) {
				b, err := c.reg.Heartbeat(ctx, id, gen, leaseTime, time.Time{}, "")
				return b.View, err
			})
		case n < 48:
			c.call("resign", c.reg.Resign)
		case n < 50:
			c.call("leave", c.reg.Deregister)
		case n < 58:
			c.open(r)
		case n < 70: // the lookout looks again while the leader may be silent
			for c.look(); c.seen.Signs != "" && r.IntN(8) > 0 && pause(ctx, leaseTime/8); {
				c.look()
			}
		case n < 77 || c.last == "":
			c.read()
		default:
			c.advance(r)
		}
	}
}

func (c *candidate) ready() {
	c.call("ready", func(ctx context.Context, id string, gen int64) (instance.View, error) {
		return c.reg.Ready(ctx, id, gen, instance.DefaultLease)
	})
}

func (c *candidate) ask(op string) leaseAsk { return leaseAsk{op: op, who: c.who, gen: c.gen} }

// said is the part of a reply that all calls have.
func said(a told, v instance.View) leaseSaid {
	r := leaseSaid{
		lost: a.fate == lost, now: store.Ms(v.Now), leader: -1, leaderGen: v.LeaderGen, epoch: v.Epoch, open: v.Open,
		waits: v.Probation > 0,
	}
	if _, err := fmt.Sscanf(v.Leader, "i%d", &r.leader); err != nil {
		r.leader = -1
	}
	switch {
	case errors.Is(a.refused, queue.ErrFenced):
		r.refused = fenced
	case errors.Is(a.refused, queue.ErrNotLeader):
		r.refused = notLeader
	}
	if r.lost || r.refused != "" {
		r = leaseSaid{lost: r.lost, refused: r.refused}
	}
	return r
}

// look looks at the leader. A leader that has paused is suspected.
func (c *candidate) look() {
	var l instance.Look
	a := c.h.ask(c.who, func() (err error) {
		l, err = c.reg.Look(context.Background(), name(c.who), c.gen, c.leads, leaseTime, c.seen, time.Minute)
		return err
	})
	r := said(a, l.View)
	r.suspects = l.Suspected
	a.wrote(c.ask("look"), r)
	if c.seen = l.Seen; a.ok() {
		c.leads = l.LeaderGen
	}
	if a.refused != nil {
		c.gen, c.term = 0, nil
	}
}

// learn updates the caller's term by a view.
func (c *candidate) learn(v instance.View) {
	c.leads = v.LeaderGen
	if v.Leader == name(c.who) && v.LeaderGen == c.gen && !slices.Contains(c.term, v.Epoch) {
		c.term = append(c.term, v.Epoch)
	}
}

func (c *candidate) join() {
	var gen, order int64
	var v instance.View
	a := c.h.ask(c.who, func() (err error) {
		cfg := instance.Config{ID: name(c.who), Lease: leaseTime, Release: releaseOf(c.who)}
		gen, order, v, err = c.reg.Register(context.Background(), cfg, instance.Past{})
		return err
	})
	r := said(a, v)
	r.gen, r.order = gen, order
	a.wrote(leaseAsk{op: "join", who: c.who}, r)
	c.gen, c.term = 0, nil
	if a.ok() {
		c.gen = gen
	}
}

func (c *candidate) call(op string, f func(ctx context.Context, id string, gen int64) (instance.View, error)) {
	var v instance.View
	a := c.h.ask(c.who, func() (err error) { v, err = f(context.Background(), name(c.who), c.gen); return err })
	a.wrote(c.ask(op), said(a, v))
	c.learn(v)
	if a.refused != nil || op == "leave" && a.ok() {
		c.gen, c.term = 0, nil
	}
}

// believed returns a term that the caller was told of: mostly the last one, now and then one that is over.
func (c *candidate) believed(r *rand.Rand) queue.Term {
	t := queue.Term{Instance: name(c.who), Gen: c.gen, Epoch: 1}
	if n := len(c.term); n > 0 {
		t.Epoch = c.term[n-1]
		if r.IntN(4) == 0 {
			t.Epoch = c.term[r.IntN(n)]
		}
	}
	return t
}

func (c *candidate) open(r *rand.Rand) {
	var v instance.View
	t := c.believed(r)
	a := c.h.ask(c.who, func() (err error) { v, err = c.reg.Open(context.Background(), t); return err })
	ask := c.ask("open")
	ask.epoch = t.Epoch
	a.wrote(ask, said(a, v))
}

func (c *candidate) read() {
	var got queue.Stored
	a := c.h.ask(c.who, func() (err error) { got, err = c.q.Schedule(context.Background(), scheduleName); return err })
	a.wrote(c.ask("read"), leaseSaid{lost: a.fate == lost, last: got.Last})
	if a.ok() {
		c.last = got.Last
	}
}

// advance moves the schedule's last run on, if it is as the caller last read it. The new value is one that no other client
// writes.
func (c *candidate) advance(r *rand.Rand) {
	t := c.believed(r)
	c.step++
	becomes := queue.Last{Rev: 1, Runs: int64(c.step*crowd + c.who)}.String()
	step := queue.Step{Name: scheduleName, Expect: c.last, Becomes: becomes}
	var now time.Time
	var moved []int
	a := c.h.ask(c.who, func() (err error) {
		now, _, moved, err = c.q.Advance(context.Background(), t, []queue.Step{step})
		return err
	})
	ask := c.ask("advance")
	ask.epoch, ask.expect, ask.becomes = t.Epoch, step.Expect, becomes
	reply := said(a, instance.View{Now: now})
	reply.moved = len(moved) > 0
	a.wrote(ask, reply)
	switch {
	case !a.ok():
	case len(moved) > 0:
		c.last = ""
	default:
		c.last = becomes
	}
}
