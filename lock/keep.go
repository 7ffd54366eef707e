package lock

import (
	"context"
	"errors"
	"time"
)

// keep renews the lease until the lock has ended.
func (h *Lock) keep() {
	defer close(h.kept)
	beat := h.a.opts.heartbeat()
	next := time.NewTimer(beat)
	defer next.Stop()
	for {
		select {
		case <-h.life.Done():
			return
		case <-next.C:
		}
		asked := time.Now() // not after the reply: a slow reply must not lengthen the lease
		switch err := h.extend(); {
		case err == nil:
			h.believe(asked.Add(h.a.opts.trusted()))
			next.Reset(beat)
		case errors.Is(err, ErrLost):
			h.end(ErrLost)
			return
		default:
			next.Reset(beat / 4) // the lease is at stake
		}
	}
}

// believe moves the moment until which the holder trusts the lock. A timer that has fired is not set again: trust that
// ended does not come back.
func (h *Lock) believe(until time.Time) {
	if h.trust.Stop() {
		h.trust.Reset(time.Until(until))
	}
}

// extend renews the lease on all nodes. A renewal counts only on a node where the lock was still ours: if a node granted it
// anew, another holder may have had it meanwhile. The end of the lock does not cut extend short, so that no renewal is
// under way when the lock is released.
func (h *Lock) extend() error {
	ours, errs := make([]bool, len(h.a.nodes)), make([]error, len(h.a.nodes))
	h.a.each(func(i int, n node) {
		kept, now, err := n.extend(context.Background(), h.a.keys, h.a.token, h.a.opts, h.until[i], h.fence, len(h.a.nodes) > 1)
		ours[i], errs[i] = err == nil && kept == keptOurs, err
		if kept == keptAgain && h.a.opts.AtLeastFor > 0 {
			h.until[i] = now + ms(max(h.a.opts.AtLeastFor-time.Since(h.taken), 0))
		}
	})
	heard := len(h.a.nodes) - countOf(errs, func(err error) bool { return err != nil })
	still := countOf(ours, yes)
	switch {
	case still >= h.a.majority():
		return nil
	case heard-still > len(h.a.nodes)-h.a.majority(): // not even if all the others still have it
		return ErrLost
	}
	return h.a.unheard(heard, errs)
}
