package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// TryAcquire takes a lock if it is free. If another holder has it, TryAcquire returns a [*HeldError] at once. If Redis does
// not answer, it returns [ErrUnreachable] within about a quarter of the TTL. The rules for names are those of tasks:
// letters, digits and - _ . : / +
//
// The lock's context is a child of ctx. Always release the lock: it is kept until then, even after ctx has ended.
func (l *Locker) TryAcquire(ctx context.Context, name string) (*Lock, error) {
	if err := task.CheckName("lock", name); err != nil {
		return nil, err
	}
	a := l.attempt(name)
	held, err := a.try(ctx, "")
	return held, a.fail(ctx, err)
}

// Acquire is TryAcquire that waits while another holder has the lock, until [Options.Wait] is over (a [*HeldError]) or ctx
// ends (its cause). Redis must answer the first try. If it goes away later, Acquire waits for it.
func (l *Locker) Acquire(ctx context.Context, name string) (*Lock, error) {
	if err := task.CheckName("lock", name); err != nil {
		return nil, err
	}
	a := l.attempt(name)
	held, err := a.try(ctx, "")
	if errors.Is(err, ErrHeld) {
		held, err = a.wait(ctx)
	}
	return held, a.fail(ctx, err)
}

// attempt is one call's way to a lock.
type attempt struct {
	*Locker
	name  string
	keys  keys
	token string
	last  *ballot
	split int // rounds in a row in which no attempt had a majority
}

func (l *Locker) attempt(name string) *attempt {
	return &attempt{Locker: l, name: name, keys: l.opts.keys(name), token: uuid.NewString()}
}

// try asks once. A lost reply leaves open whether the lock was taken; trying again with the same token tells.
func (a *attempt) try(ctx context.Context, waiter string) (*Lock, error) {
	asked := time.Now() // not after the reply: a slow reply must not lengthen the lease
	b := a.poll(ctx, a.keys, a.token, waiter)
	a.last = b
	if b.taken < a.majority() {
		err := a.refusal(a.name, b)
		if b.taken > 0 {
			a.again(ctx)
			a.split++
		} else {
			a.split = 0
		}
		return nil, err
	}
	fence := b.fence()
	if len(a.nodes) > 1 && !a.agree(ctx, fence) || time.Since(asked) >= a.opts.trusted() || ctx.Err() != nil {
		err := fmt.Errorf("%w: lock %q was not taken in time", ErrUnreachable, a.name)
		a.again(ctx)
		return nil, err
	}
	return newLock(ctx, a, asked, fence), nil
}

// agree tells the nodes that granted the lock the largest fence of all. Any two majorities share a node, so the next holder
// gets a larger fence.
func (a *attempt) agree(ctx context.Context, fence int64) bool {
	agreed := make([]bool, len(a.nodes))
	a.each(func(i int, n node) {
		if g := a.last.grants[i]; g.taken {
			kept, _, err := n.extend(ctx, a.keys, a.token, a.opts, a.until(g.now), fence, false)
			agreed[i] = err == nil && kept == keptOurs
		}
	})
	return countOf(agreed, yes) >= a.majority()
}

// until returns the time by a node's clock before which the lock may not end.
func (a *attempt) until(taken int64) int64 {
	if a.opts.AtLeastFor == 0 {
		return 0
	}
	return taken + ms(a.opts.AtLeastFor)
}

// again gives back the nodes that were taken, and gives the next try another token: the release may still be under way, and
// must not release the nodes of that try.
func (a *attempt) again(ctx context.Context) {
	a.drop(ctx, a.keys, a.token, a.last)
	a.token = uuid.NewString()
}

// fail returns the error of an attempt, or nil. It gives back nodes that the attempt may have taken although no
// reply said so.
func (a *attempt) fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if a.last.taken == 0 && a.last.heard < len(a.nodes) {
		a.drop(ctx, a.keys, a.token, a.last)
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, ErrHeld):
		return err
	}
	return fmt.Errorf("acquire lock %q: %w", a.name, err)
}

// errWaited ends the wait, and not the work.
var errWaited = errors.New("the wait reached its time limit")

// wait stands in line until the lock is taken or the time is over.
func (a *attempt) wait(ctx context.Context) (*Lock, error) {
	waited := ctx
	if a.opts.Wait > 0 {
		var done context.CancelFunc
		waited, done = context.WithTimeoutCause(ctx, a.opts.Wait, errWaited)
		defer done()
	}
	w := a.join(waited, a.name)
	defer w.leave()
	for {
		held, err := a.try(ctx, w.member)
		if err == nil {
			w.took(a.last)
			return held, nil
		}
		look, err := a.pause(err)
		if err != nil {
			return nil, err
		}
		if cause := w.sleep(waited, look); errors.Is(cause, errWaited) {
			return nil, a.refusal(a.name, a.last)
		} else if cause != nil {
			return nil, cause
		}
	}
}

// pause returns how long to sleep after a failed try, or the error if another try is useless.
func (a *attempt) pause(err error) (time.Duration, error) {
	beat := a.opts.heartbeat()
	switch {
	case !errors.Is(err, ErrHeld) && !store.Retryable(err):
		return 0, err
	case a.split > 0:
		// Several callers compete, or a node forgot the lock. They must not all retry at the same moment, and retry ever
		// more rarely.
		most := min(20*time.Millisecond<<min(a.split, 10), beat)
		return most/4 + rand.N(most), nil
	case errors.Is(err, ErrHeld):
		return a.last.soonest(a.majority(), func(g grant) time.Duration { return g.look }), nil
	}
	return beat/4 + rand.N(beat/4), nil
}
