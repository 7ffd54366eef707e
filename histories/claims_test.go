package histories

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// Consumers claim tasks and settle them, also tasks that they do not hold any more. They die with their runs and come back,
// take back the runs of dead generations, and act in the name of their earlier generations.
func TestClaims_areLinearizable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.hold("claims", size(2, 60), claimsRun, claimsSpec.model())
}

// claimsRun is one run of some consumers in a namespace of its own. At its end it looks for each task.
func claimsRun(s *stage) *history {
	s.Helper()
	h := newHistory()
	p := queue.Partition{Namespace: testredis.Namespace(s)}
	f := &fleet{}
	var all [crowd]*worker
	for i := range all {
		c := s.candidate(h, p, i)
		all[i] = &worker{h: h, who: i, reg: c.reg, q: c.q, fleet: f}
	}
	s.run(time.Second, true, crowd, func(ctx context.Context, i int, r *rand.Rand) { all[i].live(ctx, r) })
	q, err := queue.New(s.admin, p, queue.Caps{})
	if err != nil {
		s.Fatal(err)
	}
	for _, id := range jobs {
		var found queue.Found
		a := h.ask(0, func() (err error) { found, err = q.Task(s.Context(), id); return err })
		a.wrote(claimAsk{op: "find", task: id}, claimSaid{lost: a.fate == lost, state: found.State})
	}
	return h
}

var jobs = []string{"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}

// live does one thing after the other until the context ends.
func (w *worker) live(ctx context.Context, r *rand.Rand) {
	for pause(ctx, rand.N(12*time.Millisecond)) {
		switch n := r.IntN(100); {
		case w.me == nil || n < 3:
			w.join()
		case n < 20:
			w.enqueue(jobs[r.IntN(len(jobs))])
		case n < 27:
			w.cancel(jobs[r.IntN(len(jobs))], r.IntN(2) == 0)
		case n < 33:
			w.take(w.fleet.anyone(r), r)
		case n < 37:
			w.cycle(w.fleet.anyone(r), r.IntN(3), w.strange(r)) // perhaps as an earlier generation
		default:
			w.cycle(w.me, r.IntN(5), w.ends(r))
		}
	}
}

// strange returns a settlement of a task that any worker, this one included, once held, if there was one.
func (w *worker) strange(r *rand.Rand) []queue.Settlement {
	if t := w.fleet.past(r); t != nil {
		return []queue.Settlement{ending(t, r)}
	}
	return nil
}

// ends returns settlements of some tasks that the worker holds, and now and then of one that it does not hold.
func (w *worker) ends(r *rand.Rand) []queue.Settlement {
	var list []queue.Settlement
	if r.IntN(4) == 0 {
		list = w.strange(r)
	}
	for _, t := range w.held {
		if r.IntN(3) == 0 && (len(list) == 0 || list[0].ID != t.ID) {
			list = append(list, ending(t, r))
		}
	}
	return list
}

// outcomes are the ways in which runs end. After most of them the task may run again.
var outcomes = []queue.Outcome{queue.Finished, queue.Finished, queue.Moved, queue.Moved, queue.Moved, queue.Kept, queue.Died}

// ending returns the settlement of a run.
func ending(of *task.Task, r *rand.Rand) queue.Settlement {
	t := *of
	s := queue.Settlement{ID: t.ID, Fence: t.Fence, Outcome: outcomes[r.IntN(len(outcomes))]}
	switch s.Outcome {
	case queue.Kept:
		s.Keep, s.Record = time.Hour, queue.Rewrite(&t)
	case queue.Moved:
		s.Lane = queue.LaneOf(&t)
		if r.IntN(3) > 0 {
			t.Fail(task.Failure{Attempt: t.Attempt, Error: "again"})
			s.Delay, s.Record = time.Duration(r.IntN(100))*time.Millisecond, queue.Rewrite(&t)
		}
	case queue.Died:
		s.Record = queue.Rewrite(&t)
	}
	return s
}

// join registers the worker, which declares its earlier generation dead, and lets it claim.
func (w *worker) join() {
	before := w.me
	w.me, w.held = nil, nil
	cfg := instance.Config{ID: name(w.who), Lease: time.Hour, Consume: instance.ConsumeAll}
	var gen int64
	a := w.h.ask(w.who, func() (err error) {
		gen, _, _, err = w.reg.Register(context.Background(), cfg, instance.Past{})
		return err
	})
	if before != nil {
		w.last = append(w.last, before)
	}
	for _, m := range w.last { // also generations whose end the worker did not hear of
		ask := claimAsk{op: "die", gen: m.number}
		a.wrote(ask, claimSaid{lost: a.fate == lost})
		for _, ask.task = range jobs {
			a.wrote(ask, claimSaid{lost: a.fate == lost})
		}
	}
	if a.ok() {
		w.last = nil
		if w.me = w.fleet.add(w.who, gen); w.me != nil {
			w.tend()
		}
	}
}

// tend makes the worker ready, and opens the gate if the worker leads.
func (w *worker) tend() {
	ctx := context.Background()
	v, err := w.reg.Ready(ctx, name(w.who), w.me.gen, instance.DefaultLease)
	if err == nil && !v.Open && v.Leader == name(w.who) {
		_, err = w.reg.Open(ctx, queue.Term{Instance: name(w.who), Gen: w.me.gen, Epoch: v.Epoch})
	}
	w.unready = err != nil
}

func (w *worker) enqueue(id string) {
	var refused []error
	a := w.h.ask(w.who, func() (err error) {
		refused, _, err = w.q.Enqueue(context.Background(), []*task.Task{{ID: id, Type: "job"}}, true)
		return err
	})
	a.wrote(claimAsk{op: "enqueue", task: id}, claimSaid{lost: a.fate == lost, ok: a.ok() && refused[0] == nil})
}

func (w *worker) cancel(id string, forget bool) {
	var state task.State
	a := w.h.ask(w.who, func() (err error) { state, err = w.q.Cancel(context.Background(), id, "asked", forget); return err })
	a.wrote(claimAsk{op: "cancel", task: id, forget: forget}, claimSaid{lost: a.fate == lost, state: state})
}
