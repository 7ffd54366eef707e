package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

// Locker takes locks that share their options, by name. Any number of goroutines may use it; those that wait for the same
// lock share one connection. It needs no closing.
type Locker struct {
	nodes []node
	opts  Options

	mu    sync.Mutex
	lines map[string]*line // of the locks that have waiters
}

// New returns a Locker on one Redis: a server, a Sentinel or a Cluster. It does not talk to Redis yet.
func New(rdb redis.UniversalClient, opts Options) (*Locker, error) {
	return newLocker([]redis.UniversalClient{rdb}, opts, func(o Options) time.Duration { return o.heartbeat() })
}

// Quorum returns a Locker on several independent Redis servers: no replicas, no Cluster. Use three or five; an even number
// only adds work. A caller that has a majority of them has the lock, so the lock survives the loss of the others. Quorum
// does not talk to the servers yet.
//
// Each node has a twentieth of the TTL to answer, and all are asked at once. A lock is trusted for TTL − elapsed − drift,
// counted from before the first request, with a tenth of the TTL for the drift. A lock that was taken without a majority is
// released on all nodes, and tried again after a random pause.
//
// Its promises hold while clocks and processes behave:
//
//   - A node whose clock jumps ahead frees the lock early. Nothing happens while such nodes, and those that were away when
//     the lock was taken, are a minority: the next heartbeat gives the lock to them. If they are a majority, there are two
//     holders, until the first learns of it with its next heartbeat.
//   - A node that restarts empty has forgotten the lock, with the same effect. If more than a minority may restart within a
//     TTL, keep each away for a TTL, or keep its data (appendfsync always).
//   - A holder that is paused past its lease goes on without the lock until it notices: see the package's doc.
//
// So it does not replace the fencing token either. A majority agrees on [Lock.Fence], which rises for each holder even if
// the clocks of the nodes differ, while a majority keeps its data.
func Quorum(nodes []redis.UniversalClient, opts Options) (*Locker, error) {
	return newLocker(nodes, opts, func(o Options) time.Duration { return o.TTL / 20 })
}

func newLocker(clients []redis.UniversalClient, opts Options, timeout func(Options) time.Duration) (*Locker, error) {
	if len(clients) == 0 {
		return nil, &task.FieldError{Field: "nodes", Reason: "missing", Hint: "pass three or five independent Redis servers"}
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

// majority returns how many nodes make a lock.
func (l *Locker) majority() int { return len(l.nodes)/2 + 1 }

// Acquire is [Locker.Acquire] on one Redis. A program that waits in many goroutines at once should make one Locker with
// [New], so that they share its connection.
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
