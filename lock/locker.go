package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

// Locker takes locks that share their options, by name. Any number of goroutines may use it, and those of them that wait
// for the same lock share one connection. There is nothing to close.
type Locker struct {
	nodes []node
	opts  Options

	mu    sync.Mutex
	lines map[string]*line // of the locks that somebody waits for
}

// New returns a Locker on one Redis: a server, a Sentinel or a Cluster. It does not talk to Redis yet.
func New(rdb redis.UniversalClient, opts Options) (*Locker, error) {
	return newLocker([]redis.UniversalClient{rdb}, opts, func(o Options) time.Duration { return o.heartbeat() })
}

// Quorum returns a Locker on several Redis servers that know nothing of each other: no replicas, no Cluster. Three or
// five; an even number only adds work. Who has a majority of them has the lock, so it outlives the loss of the others.
// It does not talk to them yet.
//
// A node has a twentieth of the TTL to answer, and all are asked at once. What is held is believed for
// TTL − elapsed − drift, counted from before the first was asked, with a tenth of the TTL for the drift. What was taken
// without a majority is released on all, and tried again after a random while.
//
// What it promises, it promises while clocks and processes behave:
//
//   - A node whose clock jumps ahead lets go early. Nothing happens while those, and the ones that were away when the
//     lock was taken, are a minority; the next heartbeat gives it to both. With a majority there are two holders, until
//     the first hears of it with its next heartbeat.
//   - A node that restarts empty has forgotten the lock, which is the same. Let it stay away for a TTL, or keep its data
//     (appendfsync always), if more than a minority may restart within one.
//   - A holder that is paused past its lease goes on without the lock until it notices: see the package's doc.
//
// So it is no replacement for the fencing token either. [Lock.Fence] is agreed on by a majority, and rises for each
// holder even if the clocks of the nodes differ, while a majority keeps its data.
func Quorum(nodes []redis.UniversalClient, opts Options) (*Locker, error) {
	return newLocker(nodes, opts, func(o Options) time.Duration { return o.TTL / 20 })
}

func newLocker(clients []redis.UniversalClient, opts Options, timeout func(Options) time.Duration) (*Locker, error) {
	if len(clients) == 0 {
		return nil, &task.FieldError{Field: "nodes", Reason: "none", Hint: "three or five independent Redis servers"}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	l := &Locker{opts: opts, lines: make(map[string]*line)}
	for _, rdb := range clients {
		l.nodes = append(l.nodes, node{rdb: rdb, timeout: timeout(opts)})
	}
	return l, nil
}

// majority is how many nodes make a lock.
func (l *Locker) majority() int { return len(l.nodes)/2 + 1 }

// Acquire is [Locker.Acquire] on one Redis. Who waits in many goroutines at once makes one Locker of [New], to share its
// connection.
func Acquire(ctx context.Context, rdb redis.UniversalClient, name string, opts Options) (*Lock, error) {
	l, err := New(rdb, opts)
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx, name)
}

// TryAcquire is [Locker.TryAcquire] on one Redis.
func TryAcquire(ctx context.Context, rdb redis.UniversalClient, name string, opts Options) (*Lock, error) {
	l, err := New(rdb, opts)
	if err != nil {
		return nil, err
	}
	return l.TryAcquire(ctx, name)
}
