package histories

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// generation is one life of a worker.
type generation struct {
	number int // from 0, over all workers
	who    int
	gen    int64

	mu   sync.Mutex
	seq  int64
	seen []queue.Claim // its claims, when a worker last looked
}

// next returns the number of the next cycle, and now and then one that was used before.
func (g *generation) next(r int) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r == 0 && g.seq > 0 {
		return g.seq
	}
	g.seq++
	return g.seq
}

// fleet is what the workers know of each other.
type fleet struct {
	mu      sync.Mutex
	all     []*generation
	claimed []*task.Task // ever
}

// add numbers a new generation. It returns nil if there are too many already.
func (f *fleet) add(who int, gen int64) *generation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 64 {
		return nil
	}
	g := &generation{number: len(f.all), who: who, gen: gen}
	f.all = append(f.all, g)
	return g
}

// anyone returns one of the last generations, alive or dead.
func (f *fleet) anyone(r *rand.Rand) *generation {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.all)
	return f.all[n-1-r.IntN(min(n, crowd+2))]
}

// past returns one of the last claims of any worker, or nil.
func (f *fleet) past(r *rand.Rand) *task.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.claimed)
	if n == 0 {
		return nil
	}
	return f.claimed[n-1-r.IntN(min(n, 12))]
}

func (f *fleet) note(tasks []*task.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claimed = append(f.claimed, tasks...)
}

// looked returns what a generation holds, and some of what it held when a worker looked before.
func (g *generation) looked(now []queue.Claim) []queue.Claim {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Concat(now, g.seen[:min(len(g.seen), 3)])
	g.seen = now
	return all
}

// worker is a consumer: its knowledge, true or not.
type worker struct {
	h       *history
	who     int
	reg     *instance.Registry
	q       *queue.Queue
	fleet   *fleet
	me      *generation   // nil: it is not registered
	last    []*generation // its earlier generations that may not be dead yet
	held    []*task.Task
	unready bool
}

// cycle settles and claims, as the worker itself or as another.
func (w *worker) cycle(as *generation, want int, settle []queue.Settlement) {
	if as == w.me && w.unready {
		w.tend()
	}
	req := &queue.CycleRequest{
		Instance: name(as.who), Gen: as.gen, Seq: as.next(rand.IntN(30)), Want: want, Settle: settle, Reads: "x",
		Lanes: []queue.LaneClaim{{Lane: queue.Lane{Queue: task.DefaultQueue, Type: "job"}}},
	}
	var reply *queue.CycleReply
	a := w.h.ask(w.who, func() (err error) { reply, err = w.q.Cycle(context.Background(), req); return err })
	said := claimSaid{lost: a.fate == lost}
	switch {
	case errors.Is(a.refused, queue.ErrFenced):
		said.refused = fenced
	case errors.Is(a.refused, queue.ErrStale):
		said.refused = stale
	}
	a.wrote(claimAsk{op: "cycle", gen: as.number, seq: req.Seq}, said)
	switch {
	case a.fate == lost:
		w.unheard(a, as, req)
	case a.ok():
		w.heard(a, as, req, reply)
	case as == w.me && a.refused != nil && said.refused == fenced:
		w.held = nil
	}
}

// unheard records a cycle without a reply: it may have made any of its settlements, and claimed any task.
func (w *worker) unheard(a told, as *generation, req *queue.CycleRequest) {
	for _, s := range req.Settle {
		a.wrote(settling(as, s), claimSaid{lost: true})
	}
	if req.Want > 0 {
		for _, id := range jobs {
			a.wrote(claimAsk{op: "claim", task: id, gen: as.number}, claimSaid{lost: true})
		}
	}
	if as == w.me {
		w.cycle(as, 0, nil) // makes every earlier cycle stale
		w.look(as)
	}
}

func (w *worker) heard(a told, as *generation, req *queue.CycleRequest, reply *queue.CycleReply) {
	now := reply.Now.UnixMilli()
	for i, s := range req.Settle {
		a.wrote(settling(as, s), claimSaid{ok: !slices.Contains(reply.Void, i) && !slices.Contains(reply.Refused, i), due: now + s.Delay.Milliseconds()})
		if as == w.me {
			w.held = slices.DeleteFunc(w.held, func(t *task.Task) bool { return t.ID == s.ID && t.Fence == s.Fence })
		}
	}
	for _, t := range reply.Claimed {
		a.wrote(claimAsk{op: "claim", task: t.ID, gen: as.number}, claimSaid{now: now, fence: t.Fence, attempt: t.Attempt})
	}
	w.fleet.note(reply.Claimed)
	if as == w.me {
		w.held = append(w.held, reply.Claimed...)
		w.unready = !reply.MayClaim
	}
}

func settling(as *generation, s queue.Settlement) claimAsk {
	return claimAsk{op: "settle", task: s.ID, gen: as.number, fence: s.Fence, outcome: s.Outcome, counts: s.Record != nil}
}

// look reads and returns what a generation holds.
func (w *worker) look(at *generation) []queue.Claim {
	var claims []queue.Claim
	a := w.h.ask(w.who, func() (err error) {
		claims, _, err = w.q.Claims(context.Background(), at.gen, name(at.who))
		return err
	})
	if !a.ok() {
		return nil
	}
	for _, id := range jobs {
		said := claimSaid{}
		for _, c := range claims {
			if c.Task.ID == id {
				said.fence = c.Task.Fence
			}
		}
		a.wrote(claimAsk{op: "look", task: id, gen: at.number}, said)
	}
	if at == w.me {
		w.held = nil
		for _, c := range claims {
			w.held = append(w.held, c.Task)
		}
		w.fleet.note(w.held)
	}
	return claims
}

// take gives back some of what a dead generation holds, and some of what it held when a worker last looked, one task a call.
func (w *worker) take(from *generation, r *rand.Rand) {
	for _, c := range from.looked(w.look(from)) {
		if r.IntN(3) > 0 {
			w.recover(from, c, r.IntN(4) > 0)
			if r.IntN(2) == 0 { // as if it had not seen the reply
				w.recover(from, c, r.IntN(4) > 0)
			}
		}
	}
}

func (w *worker) recover(from *generation, c queue.Claim, again bool) {
	t := *c.Task
	t.Fail(task.Failure{Attempt: t.Attempt, Error: "lost"})
	rec := queue.Recovery{Claim: c, Lane: queue.LaneOf(&t), Dead: !again, Record: queue.Rewrite(&t)}
	if again {
		cancelled := rec
		cancelled.Dead, rec.Asked = true, &cancelled
	}
	var moved int
	a := w.h.ask(w.who, func() (err error) {
		moved, _, err = w.q.Recover(context.Background(), from.gen, []queue.Recovery{rec})
		return err
	})
	said := claimSaid{lost: a.fate == lost, ok: moved == 1}
	if a.refused != nil {
		said.refused = alive
	}
	a.wrote(claimAsk{op: "recover", task: t.ID, gen: from.number, fence: t.Fence, again: again}, said)
}
