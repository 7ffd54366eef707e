package model

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
)

// phase is an instance's state, as the instance knows it.
type phase uint8

const (
	out phase = iota
	joined
	ready
	drained
)

// proc is an instance: its knowledge, true or not. It acts by nothing else.
type proc struct {
	id, release string
	standby     bool

	phase  phase
	gen    int64 // its own, or the last one it had
	order  int64
	epoch  int64 // of the term in which it believes it leads; 0: none
	seq    int64
	caught bool // in this term it has dealt with the missed slots
	may    bool // in this term it was told that it may declare
	unsure bool // the reply of a cycle was lost: it may hold claims that it does not know

	claims  []claim
	tried   []claim // settled by a cycle with a lost reply: it may settle them again
	last    string  // the schedule's last run, as it read it in this term
	behind  string  // the slots that the schedule is behind with, as it read them in this term
	read    bool
	orphans []int64
	looked  []queue.Claim // claims that it saw of a dead generation, to recover
	lost    int64         // that generation
	leads   int64         // the generation that leads, as it last heard
	seen    instance.Seen // what it saw of the leader when it last looked out
	saw     signs         // the same, by the book
	flight  *call         // a call that it no longer waits for, and that has not arrived
}

// claim is a task that an instance believes it holds.
type claim struct {
	id    string
	fence int64
	due   int64
}

func (p *proc) clone() proc {
	c := *p
	c.claims = slices.Clone(p.claims)
	c.tried = slices.Clone(p.tried)
	c.orphans = slices.Clone(p.orphans)
	return c
}

// mark writes down p's knowledge, with sequence numbers as the distance to the last one that Redis saw.
func (p *proc) mark(h *maphash.Hash, s *state, ranks func(int64) int) {
	seen := func(gen int64) int64 { return number(s.disk.get(keys.Running(gen), "")) }
	fmt.Fprintf(h, "%s\n%s %s %d %d %d %d %d %t %t %t %s %t %v %d\n", p.behind, p.id, p.release, p.phase, p.gen, p.order,
		ranks(p.epoch), max(p.seq-seen(p.gen), -1), p.caught, p.may, p.unsure, p.last, p.read, p.orphans, p.lost)
	if s.looks {
		fmt.Fprintf(h, "%d %v %v\n", p.leads, p.seen, p.saw)
	}
	for _, c := range slices.Concat(p.claims, []claim{{}}, p.tried) {
		fmt.Fprintf(h, "%s %d %d\n", c.id, ranks(c.fence), c.due)
	}
	for _, c := range p.looked {
		fmt.Fprintf(h, "%s %s\n", c.Task.ID, c.Value)
	}
	if f := p.flight; f != nil {
		fmt.Fprintf(h, "%s %s %d %d %d %d %s %d %d %d\n", f.behind, f.op, f.gen, ranks(f.epoch), max(f.seq-seen(f.gen), -1), f.want, f.last, f.outcome, f.order, f.orphan)
		fmt.Fprintln(h, f.taken)
		for _, c := range f.looked {
			fmt.Fprintf(h, "%s %s\n", c.Task.ID, c.Value)
		}
		for _, c := range f.settle {
			fmt.Fprintf(h, "%s %d\n", c.id, ranks(c.fence))
		}
	}
}

// call returns the call that p would make now.
func (p *proc) call(op string) call {
	return call{
		op: op, id: p.id, release: p.release, standby: p.standby, gen: p.gen, order: p.order, epoch: p.epoch, last: p.last,
		behind: p.behind, leads: p.leads, seen: p.seen, saw: p.saw,
	}
}

// cycle returns p's next cycle, which settles all its claims with one outcome, or nothing.
func (p *proc) cycle(want int, settles bool, o queue.Outcome) call {
	c := p.call("cycle")
	p.seq++
	c.seq, c.want, c.outcome = p.seq, want, o
	if settles {
		c.settle = slices.Clone(p.claims)
	} else {
		c.taken = p.taken()
	}
	return c
}

// see learns which instance leads.
func (p *proc) see(v instance.View) {
	p.leads = v.LeaderGen
	epoch := int64(0)
	if v.Leader == p.id && v.LeaderGen == p.gen && p.phase != drained {
		epoch = v.Epoch
	}
	if epoch != p.epoch {
		p.epoch, p.caught, p.may, p.last, p.behind, p.read = epoch, false, false, "", "", false
	}
}

// void is called when p hears that its lease has run out: its claims are void.
func (p *proc) void() {
	*p = proc{id: p.id, release: p.release, standby: p.standby, gen: p.gen, order: p.order, flight: p.flight}
}

// crash returns p as its supervisor starts it again: it knows nothing.
func (p *proc) crash() {
	*p = proc{id: p.id, release: p.release, standby: p.standby, flight: p.flight}
}

// learn updates p's knowledge with the reply to a call.
func (p *proc) learn(c call, a answer) {
	switch a.refused {
	case fenced:
		p.void()
		return
	case notLeader:
		p.see(instance.View{})
		return
	case alive:
		p.looked, p.lost = nil, 0
		return
	}
	if a.refused != done {
		return
	}
	switch c.op {
	case "join":
		p.phase, p.gen, p.order, p.seq, p.claims = joined, a.gen, a.order, 0, nil
	case "ready":
		if a.view.Probation == 0 {
			p.phase = max(p.phase, ready)
		}
	case "resign":
		p.phase = drained
	case "stand down":
		if a.may {
			p.phase = joined
		}
	case "leave":
		p.crash()
		return
	case "beat":
		p.orphans = a.orphans
	case "look out":
		p.seen, p.leads = a.look.Seen, a.view.LeaderGen
		return
	case "suspect":
		return // only heartbeats take in a view
	case "open":
	case "declare":
		p.may = a.may
	case "read":
		p.last, p.behind, p.read = a.last, a.behind, true
	case "advance", "catchup", "define", "put off", "repay", "give up":
		p.caught = p.caught || c.op == "catchup"
		p.last, p.read = a.last, a.last != ""
		if c.op != "define" {
			p.behind = a.behind
		}
	case "cycle":
		p.settled(c, a)
	case "look":
		p.looked, p.lost = a.looked, c.orphan
	case "recover", "recover one":
		p.looked, p.lost = nil, 0
	}
	if a.view != nil {
		if a.view.State == "draining" && c.op != "leave" { // a person asked it to
			p.phase = drained
		}
		p.see(*a.view)
	}
}

// settled updates p's claims after a cycle. The void ones belong to another instance now.
func (p *proc) settled(c call, a answer) {
	p.claims = slices.DeleteFunc(slices.Clone(p.claims), func(x claim) bool { return slices.Contains(c.settle, x) })
	for _, i := range a.cycle.Refused { // to be settled as cancelled
		p.claims = append(p.claims, c.settle[i])
	}
	p.claims = append(p.claims, a.claims...)
}
