package histories

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// history is the calls of all clients in one run, with their replies.
type history struct {
	began time.Time

	mu     sync.Mutex
	ops    []porcupine.Operation
	lost   []int // the calls with a lost reply
	strays []error
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) clock() int64 { return int64(time.Since(h.began)) }

// fate is the outcome of a call, as its caller knows it.
type fate int

const (
	answered fate = iota // with a result, or with a refusal that says that nothing was done
	lost                 // without a reply: it may have taken effect, or may do so later
	unsent               // it certainly did not take effect
)

// refusals are the errors after which nothing was done.
var refusals = []error{queue.ErrFenced, queue.ErrNotLeader, queue.ErrStale, queue.ErrAlive, queue.ErrNotFound}

// refusal returns the one of them that an error is, or nil.
func refusal(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return r
		}
	}
	return nil
}

// told is one call: its beginning and its end, and its outcome.
type told struct {
	h            *history
	client       int
	call, answer int64
	fate         fate
	refused      error
}

// ask makes a call. It keeps an error that no fault explains, which fails the test.
func (h *history) ask(client int, call func() error) told {
	a := told{h: h, client: client, call: h.clock()}
	err := call()
	a.answer = h.clock()
	a.refused = refusal(err)
	switch {
	case err == nil || a.refused != nil:
	case store.NotSent(err), errors.Is(err, store.ErrBusy):
		a.fate = unsent
	case errors.Is(err, store.ErrUnreachable):
		a.fate = lost
	default:
		a.fate = lost
		h.mu.Lock()
		h.strays = append(h.strays, fmt.Errorf("client %d: %w", client, err))
		h.mu.Unlock()
	}
	return a
}

func (a told) ok() bool { return a.fate == answered && a.refused == nil }

// wrote adds to the history what the call tells of one task, lease or lock. One call may tell of several.
func (a told) wrote(asked, replied any) {
	if a.fate == unsent {
		return
	}
	a.h.mu.Lock()
	defer a.h.mu.Unlock()
	if a.fate == lost {
		a.h.lost = append(a.h.lost, len(a.h.ops))
	}
	a.h.ops = append(a.h.ops, porcupine.Operation{
		ClientId: a.client, Input: asked, Call: a.call, Output: replied, Return: a.answer,
	})
}

// all returns the history to judge. A call with a lost reply may take effect until the end.
func (h *history) all() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	var end int64
	for _, op := range h.ops {
		end = max(end, op.Return)
	}
	for _, i := range h.lost {
		h.ops[i].Return = end + 1
	}
	return h.ops
}

// stray returns why the history cannot be judged, or nil.
func (h *history) stray() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.strays...)
}
