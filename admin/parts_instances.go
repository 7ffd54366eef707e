package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// instancesOfParts are the instances of a namespace that is split. Each is registered in all partitions, under one ID.
type instancesOfParts struct{ *parts }

func (n instancesOfParts) List(ctx context.Context) (InstanceList, error) {
	var answered [queue.MostPartitions]time.Time
	lists, missing, err := gatherSoon(ctx, n.parts, func(ctx context.Context, x *part) (numbered[InstanceList], error) {
		list, err := x.instances.List(ctx)
		answered[x.number-1] = time.Now()
		return numbered[InstanceList]{x.number, list}, err
	})
	for i := range lists { // one that hangs was waited for since
		l := &lists[i]
		l.answer.Now = l.answer.Now.Add(time.Since(answered[l.part-1]))
	}
	out := joinInstances(lists)
	out.CouldNotAsk = missing
	return out, err
}

// numbered is the answer of a partition.
type numbered[T any] struct {
	part   int
	answer T
}

// joinInstances makes one list of those of partitions.
func joinInstances(lists []numbered[InstanceList]) InstanceList {
	out := InstanceList{Items: []Instance{}}
	at, in := map[string]int{}, map[string]int{}
	for _, l := range lists {
		out.Now = later(out.Now, l.answer.Now)
		if l.answer.PausedUntil.After(out.PausedUntil) {
			out.PausedUntil, out.PauseReason = l.answer.PausedUntil, l.answer.PauseReason
		}
		if l.answer.Leader() == nil {
			out.LeaderlessParts = append(out.LeaderlessParts, l.part)
			out.LeaderlessSince = earlier(out.LeaderlessSince, l.answer.LeaderlessSince)
		}
		for _, i := range l.answer.Items {
			k, ok := at[i.ID]
			if !ok {
				k = len(out.Items)
				at[i.ID], out.Items = k, append(out.Items, i)
				out.Items[k].Epoch, out.Items[k].Leads = 0, nil
			} else {
				out.Items[k].join(&i)
			}
			if i.Leader && i.LeaseLeftMS > 0 {
				out.Items[k].Leads = append(out.Items[k].Leads, l.part)
			}
			in[i.ID]++
		}
	}
	for k := range out.Items { // a partition may not know it yet, or no more
		if i := &out.Items[k]; in[i.ID] < len(lists) && i.State == "ready" {
			i.State = "starting"
		}
	}
	slices.SortStableFunc(out.Items, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(len(b.Leads), len(a.Leads)), cmp.Compare(b.Generation, a.Generation))
	})
	return out
}

// states from the best to the worst: an instance has the worst that it has in a partition.
var states = []string{"ready", "starting", "draining"}

// join adds what another partition knows of an instance.
func (i *Instance) join(other *Instance) {
	if slices.Index(states, other.State) > slices.Index(states, i.State) {
		i.State = other.State
	}
	i.Order, i.Generation = max(i.Order, other.Order), max(i.Generation, other.Generation)
	i.Resigned, i.Suspected, i.Leader = i.Resigned && other.Resigned, i.Suspected || other.Suspected, i.Leader || other.Leader
	i.Running += other.Running
	i.LeaseLeftMS, i.ProbationLeftMS = min(i.LeaseLeftMS, other.LeaseLeftMS), max(i.ProbationLeftMS, other.ProbationLeftMS)
}

func (n instancesOfParts) Promote(ctx context.Context, release string) (Promoted, error) {
	return changed(ctx, n.parts, func(ctx context.Context, x *part) (Promoted, error) { return x.instances.Promote(ctx, release) },
		func(a *Promoted, b Promoted) { a.Leads = a.Leads && b.Leads })
}

func (n instancesOfParts) Resign(ctx context.Context, id string) error {
	return n.toEach(ctx, func(ctx context.Context, x *part) error { return x.instances.Resign(ctx, id) })
}

func (n instancesOfParts) Drain(ctx context.Context, id string) error {
	return n.toEach(ctx, func(ctx context.Context, x *part) error { return x.instances.Drain(ctx, id) })
}

// toEach asks an instance in each partition. One that has left some of them already is asked in the others.
func (n instancesOfParts) toEach(ctx context.Context, do func(ctx context.Context, x *part) error) error {
	_, err := changed(ctx, n.parts, func(ctx context.Context, x *part) (struct{}, error) { return struct{}{}, do(ctx, x) }, func(*struct{}, struct{}) {})
	return err
}

func (n instancesOfParts) Pause(ctx context.Context, d time.Duration, reason string) (Pause, error) {
	return changed(ctx, n.parts, func(ctx context.Context, x *part) (Pause, error) { return x.instances.Pause(ctx, d, reason) },
		func(a *Pause, b Pause) { a.Until = later(a.Until, b.Until) })
}

func (n instancesOfParts) Resume(ctx context.Context) error {
	return n.toEach(ctx, func(ctx context.Context, x *part) error { return x.instances.Resume(ctx) })
}

// changed is one for a change: if some partitions do not answer, the error says that the others have it.
func changed[T any](ctx context.Context, p *parts, do func(ctx context.Context, x *part) (T, error), join func(a *T, b T)) (T, error) {
	var made atomic.Int64
	out, err := one(ctx, p, func(ctx context.Context, x *part) (T, error) {
		answer, err := do(ctx, x)
		if err == nil {
			made.Add(1)
		}
		return answer, err
	}, join)
	if n := made.Load(); n > 0 && err != nil {
		err = fmt.Errorf("%w (it is done in %s: do it again for the rest)", err, wording.Count(n, "other partition", "other partitions"))
	}
	return out, err
}

// one does something in all partitions, and joins the answers. The error is [task.ErrNotFound] only if none finds the thing. If some
// partitions fail, the error says which, and the answer is that of the others: to do it again does no harm.
func one[T any](ctx context.Context, p *parts, do func(ctx context.Context, x *part) (T, error), join func(a *T, b T)) (out T, err error) {
	found := make([]*T, len(p.list))
	var lacks error
	errs := make([]error, len(p.list))
	_ = toAll(ctx, p, func(ctx context.Context, x *part) error {
		answer, err := do(ctx, x)
		if errs[x.number-1] = err; err == nil {
			found[x.number-1] = &answer
		}
		return nil
	})
	any := false
	for i, answer := range found {
		switch {
		case answer == nil && errors.Is(errs[i], task.ErrNotFound):
			lacks = cmp.Or(lacks, errs[i])
		case answer == nil:
			err = errors.Join(err, split.In(i+1, errs[i]))
		case any:
			join(&out, *answer)
		default:
			out, any = *answer, true
		}
	}
	if !any && err == nil {
		err = lacks
	}
	return out, err
}
