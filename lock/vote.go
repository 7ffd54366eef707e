package lock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// ballot is the result of asking all nodes once.
type ballot struct {
	grants []grant
	errs   []error
	taken  int
	heard  int // how many nodes answered
}

// each asks all nodes at once, and waits until each has answered or timed out.
func (l *Locker) each(ask func(i int, n node)) {
	if len(l.nodes) == 1 {
		ask(0, l.nodes[0])
		return
	}
	var wg sync.WaitGroup
	for i, n := range l.nodes {
		wg.Go(func() { ask(i, n) })
	}
	wg.Wait()
}

// poll asks all nodes for a lock.
func (l *Locker) poll(ctx context.Context, k keys, token, waiter string) *ballot {
	b := &ballot{grants: make([]grant, len(l.nodes)), errs: make([]error, len(l.nodes))}
	l.each(func(i int, n node) { b.grants[i], b.errs[i] = n.acquire(ctx, k, token, l.opts, waiter) })
	for i, g := range b.grants {
		if b.errs[i] == nil {
			b.heard++
		}
		if g.taken {
			b.taken++
		}
	}
	return b
}

// fence returns the largest fence that a node gave.
func (b *ballot) fence() (largest int64) {
	for _, g := range b.grants {
		largest = max(largest, g.fence)
	}
	return largest
}

// soonest returns when a majority of nodes could be free, by the durations that pick takes from the grants.
func (b *ballot) soonest(majority int, pick func(grant) time.Duration) time.Duration {
	var all []time.Duration
	for i, g := range b.grants {
		if b.errs[i] == nil {
			all = append(all, pick(g))
		}
	}
	slices.Sort(all)
	return all[min(majority, len(all))-1]
}

// refusal says why the lock was not taken: enough nodes say that another holder has it, or too few nodes answered.
func (l *Locker) refusal(name string, b *ballot) error {
	if b.heard >= l.majority() {
		return &HeldError{Name: name, For: b.soonest(l.majority(), func(g grant) time.Duration { return g.left })}
	}
	return l.unheard(b.heard, b.errs)
}

// unheard returns the error of a round in which too few nodes answered.
func (l *Locker) unheard(heard int, errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || !store.Retryable(first)) {
			first = err
		}
	}
	if len(l.nodes) == 1 {
		return first
	}
	return fmt.Errorf("%d of %d nodes answered: %w", heard, len(l.nodes), first)
}

// drop gives back the nodes that an attempt took or may have taken. It wakes no waiter: when several attempts compete, none of
// them must start the next.
func (l *Locker) drop(ctx context.Context, k keys, token string, b *ballot) {
	ctx = context.WithoutCancel(ctx)
	l.each(func(i int, n node) {
		if b.grants[i].taken || b.errs[i] != nil && !store.NotSent(b.errs[i]) {
			n.timeout = l.opts.TTL / 20 // the caller waits
			_, _ = n.release(ctx, k, token, 0, len(l.nodes) > 1)
		}
	})
}
