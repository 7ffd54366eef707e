package lock

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// line is where the waiters of one lock on one Locker listen: one subscription a node, however many waiters there are. It
// lives while at least one waits.
type line struct {
	id    string
	close context.CancelFunc
	ready chan struct{} // closed when every node has confirmed the subscription

	mu      sync.Mutex
	waiters map[string]*waiter
	last    int
	unready int
}

// waiter is one call of Acquire that waits in line.
type waiter struct {
	*Locker
	line   *line
	name   string
	number string
	member string // its name on the nodes
	bell   chan struct{}
	in     []bool // by node: it may be in line there
}

// join puts a waiter in line, locally: the nodes learn of it with the next try. It returns when a wake-up could be heard.
func (l *Locker) join(ctx context.Context, name string) *waiter {
	l.mu.Lock()
	n := l.lines[name]
	if n == nil {
		n = l.listen(name)
		l.lines[name] = n
	}
	w := n.add()
	l.mu.Unlock()
	w.Locker, w.name, w.in = l, name, make([]bool, len(l.nodes))
	for i := range w.in {
		w.in[i] = true
	}
	late := time.NewTimer(l.nodes[0].timeout)
	defer late.Stop()
	select {
	case <-n.ready:
	case <-late.C: // without the subscription no release wakes this waiter, and it looks by itself
	case <-ctx.Done():
	}
	return w
}

func (n *line) add() *waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	number := strconv.Itoa(n.last)
	w := &waiter{line: n, number: number, member: n.id + " " + number, bell: make(chan struct{}, 1)}
	n.waiters[number] = w
	return w
}

// took notes that the lock was taken: the nodes that granted it have taken the waiter out of their lines.
func (w *waiter) took(b *ballot) {
	for i, g := range b.grants {
		w.in[i] = !g.taken
	}
}

// leave takes the waiter out of line. A wake-up that was meant for this waiter goes to the next.
func (w *waiter) leave() {
	w.line.remove(w)
	w.each(func(i int, n node) {
		if w.in[i] {
			n.timeout = w.opts.TTL / 20 // the caller waits; a waiter that stays in line is passed over when its turn comes
			_ = n.leave(context.Background(), w.keys(), w.member)
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line.empty() && w.lines[w.name] == w.line {
		delete(w.lines, w.name)
		w.line.close()
	}
}

func (w *waiter) keys() keys { return w.opts.keys(w.name) }

// sleep returns when the waiter is woken or it is time to look, or with the cause of ctx.
func (w *waiter) sleep(ctx context.Context, look time.Duration) error {
	t := time.NewTimer(look + time.Millisecond) // Redis truncates its times to whole milliseconds
	defer t.Stop()
	select {
	case <-w.bell:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (w *waiter) wake() {
	select {
	case w.bell <- struct{}{}:
	default: // it is awake
	}
}

// listen opens a line. Messages may be lost: each is a matter of speed only.
func (l *Locker) listen(name string) *line {
	ctx, cancel := context.WithCancel(context.Background())
	n := &line{
		id: uuid.NewString(), close: cancel, ready: make(chan struct{}),
		waiters: make(map[string]*waiter), unready: len(l.nodes),
	}
	for _, node := range l.nodes {
		go n.hear(ctx, node.rdb, l.opts.keys(name).wake+n.id)
	}
	return n
}

func (n *line) hear(ctx context.Context, rdb redis.UniversalClient, channel string) {
	sub := rdb.Subscribe(ctx, channel) // it dials, so not on the caller's goroutine
	defer func() { _ = sub.Close() }()
	heard := false
	// Probe an idle connection rarely: every probe is a command that Redis has to answer.
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute))
	for {
		select {
		case <-ctx.Done():
			return
		case msg, ok := <-messages:
			if !ok {
				return
			}
			switch v := msg.(type) {
			case *redis.Subscription:
				if heard { // the connection was broken: a wake-up may have been lost meanwhile
					n.wakeAll()
				} else {
					heard = true
					n.confirm()
				}
			case *redis.Message:
				n.wake(v.Payload)
			}
		}
	}
}

func (n *line) confirm() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unready--; n.unready == 0 {
		close(n.ready)
	}
}

// wake wakes the waiter with that number. If that waiter has left and Redis does not know so, wake wakes any other: Redis
// takes the wake-up for delivered, and wakes no other waiter.
func (n *line) wake(number string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.waiters[number]; w != nil {
		w.wake()
		return
	}
	for _, w := range n.waiters {
		w.wake()
		return
	}
}

func (n *line) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.waiters {
		w.wake()
	}
}

func (n *line) remove(w *waiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiters, w.number)
}

func (n *line) empty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.waiters) == 0
}
