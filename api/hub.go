package api

import (
	"context"
	"sync"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
)

// How long the hub waits before it asks Redis again.
const (
	leastPause   = 200 * time.Millisecond
	longestPause = 2 * time.Second
)

// hub reads the events of Redis, once for all listeners, while there are any.
type hub struct {
	activity admin.Activity

	mu        sync.Mutex
	listeners map[*listener]bool
	stop      context.CancelFunc // of the reader; nil: there is none
	ended     chan struct{}      // closed when the last reader has ended
	last      split.Cursor       // of the event that was sent last, or the newest before the reader began
	known     bool               // last is known
	pulse     pulse              // the newest
	closed    bool
}

// listener gets the events from a place on.
type listener struct {
	who    string // whose it is
	events chan admin.Event
	status bool          // it wants the status too
	pulses chan pulse    // the newest counts
	known  chan struct{} // closed when at is set
	at     split.Cursor  // it gets the events after this one
	gone   chan struct{} // closed when it was dropped: it is too slow, or the hub is closed
}

// while is ctx while the listener is not dropped.
func (l *listener) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, done := context.WithCancel(ctx)
	go func() {
		select {
		case <-l.gone:
			done()
		case <-ctx.Done():
		}
	}()
	return ctx, done
}

func newHub(a admin.Activity) *hub { return &hub{activity: a, listeners: map[*listener]bool{}} }

// join adds a listener, unless its sender has as many as it leaves to others. The first of them starts the reader.
func (h *hub) join(who string, status bool) (*listener, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 1
	for l := range h.listeners {
		if l.who == who {
			own++
		}
	}
	if h.closed || own > mostListeners-len(h.listeners)-1 {
		return nil, false
	}
	l := &listener{
		who: who, status: status,
		events: make(chan admin.Event, behindAtMost), pulses: make(chan pulse, 1), known: make(chan struct{}), gone: make(chan struct{}),
	}
	if h.stop == nil {
		h.start()
	}
	if h.known {
		l.at = h.last
		close(l.known)
	}
	if h.pulse != (pulse{}) {
		l.hear(h.pulse)
	}
	h.listeners[l] = true
	return l, true
}

// leave removes a listener. The last of them stops the reader.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(l)
}

func (h *hub) remove(l *listener) {
	if !h.listeners[l] {
		return
	}
	delete(h.listeners, l)
	if len(h.listeners) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// drop ends the stream of a listener.
func (h *hub) drop(l *listener) {
	h.remove(l)
	close(l.gone)
}

// close drops all listeners, lets in no more, and waits for the reader.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for l := range h.listeners {
		h.drop(l)
	}
	ended := h.ended
	h.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// start starts a reader, which begins when the one before it has ended.
func (h *hub) start() {
	ctx, stop := context.WithCancel(context.Background())
	before, ended := h.ended, make(chan struct{})
	h.stop, h.ended, h.known, h.pulse = stop, ended, false, pulse{}
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		var feels sync.WaitGroup
		feels.Go(func() { h.feel(ctx) })
		h.read(ctx)
		feels.Wait()
	}()
}

// read reads events until ctx ends. While Redis is away it asks again and again, and goes on where it was.
func (h *hub) read(ctx context.Context) {
	for wait := leastPause; ctx.Err() == nil; wait = min(2*wait, longestPause) {
		if err := h.begin(ctx); err == nil {
			h.tell(ctx, false)
			began := time.Now()
			_ = h.activity.Follow(ctx, h.place().String(), func(e admin.Event) error {
				h.send(ctx, e)
				return ctx.Err()
			})
			if time.Since(began) > longestPause {
				wait = leastPause
			}
		} else if ctx.Err() == nil {
			h.tell(ctx, true)
		}
		_ = pause(ctx, wait)
	}
}

// begin finds the newest event, once, and asks whether Redis answers.
func (h *hub) begin(ctx context.Context) error {
	h.mu.Lock()
	known := h.known
	h.mu.Unlock()
	if known {
		_, err := h.activity.Now(ctx)
		return err
	}
	newest, err := h.newest(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // another reader has begun
	}
	h.last, h.known = newest, true
	for l := range h.listeners {
		l.at = newest
		close(l.known)
	}
	return nil
}

func (h *hub) newest(ctx context.Context) (split.Cursor, error) {
	list, err := h.activity.Events(ctx, admin.EventQuery{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return split.Cursor{}, err
	}
	return split.ParseCursor(list.Items[len(list.Items)-1].Cursor)
}

func (h *hub) place() split.Cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// send gives an event to all listeners. It waits for none: one that is too far behind is dropped, and can come back.
func (h *hub) send(ctx context.Context, e admin.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.last = h.last.Past(split.PlaceOf(e.ID))
	for l := range h.listeners {
		select {
		case l.events <- e:
		default:
			h.drop(l)
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
