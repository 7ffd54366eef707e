package lock

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

//go:embed scripts/*.lua
var files embed.FS

var source = store.Sources(files)

var (
	acquireScript = store.NewScript("lock/acquire", source("lib_line"), source("acquire"))
	extendScript  = store.NewScript("lock/extend", source("extend"))
	releaseScript = store.NewScript("lock/release", source("lib_line"), source("release"))
	leaveScript   = store.NewScript("lock/leave", source("lib_line"), source("leave"))
)

// keys are the Redis keys of one lock. They share a hash tag of their own, so a Redis Cluster spreads the locks over its
// nodes.
type keys struct {
	lock, fence, wait string
	wake              string // channel; the name of a line follows
}

func (o Options) keys(name string) keys {
	x := "onbeat:{" + o.Namespace + "|" + name + "}:" // names have no bar
	return keys{lock: x + "lock", fence: x + "fence", wait: x + "wait", wake: x + "wake:"}
}

// step is how far apart in time the waiters of a lock check for a holder that died.
const step = 5 * time.Millisecond

// node is one Redis, with one method a script.
type node struct {
	rdb     redis.UniversalClient
	timeout time.Duration
}

// grant is the answer of a node to acquire.
type grant struct {
	taken bool
	fence int64
	now   int64         // by the clock of the node, ms
	left  time.Duration // if it is held: the rest of its lease
	look  time.Duration // if it is held: after how long a waiter is to look again
}

func (n node) acquire(ctx context.Context, k keys, token string, o Options, waiter string) (grant, error) {
	v, err := n.run(ctx, acquireScript, []string{k.lock, k.fence, k.wait},
		token, ms(o.first()), ms(o.TTL), waiter, ms(step))
	if err != nil {
		return grant{}, err
	}
	if v.Int(0) == 1 {
		return grant{taken: true, fence: v.Int(1), now: v.Int(2)}, nil
	}
	return grant{left: millis(v.Int(1)), look: millis(v.Int(2))}, nil
}

// The answers of a node to extend.
const (
	keptNot = iota
	keptOurs
	keptAgain // it was free
)

func (n node) extend(ctx context.Context, k keys, token string, o Options, until, fence int64, heal bool) (kept int, now int64, err error) {
	again := 0
	if heal {
		again = 1
	}
	v, err := n.run(ctx, extendScript, []string{k.lock, k.fence}, token, ms(o.TTL), until, fence, again)
	return int(v.Int(0)), v.Int(1), err
}

func (n node) release(ctx context.Context, k keys, token string, until int64, quiet bool) (ours bool, err error) {
	silent := 0
	if quiet {
		silent = 1
	}
	v, err := n.run(ctx, releaseScript, []string{k.lock, k.wait}, token, until, k.wake, silent)
	return v.Int(0) == 1, err
}

func (n node) leave(ctx context.Context, k keys, waiter string) error {
	_, err := n.run(ctx, leaveScript, []string{k.wait}, waiter, k.wake)
	return err
}

// run gives up waiting at the node's timeout or when ctx ends, whether or not the client listens to contexts while it waits
// for a reply (by default it does not). It drops a reply that comes later.
//
// When ctx ends, run still waits for a moment: the call may be under way, and the call that undoes it, on another
// connection, must not overtake it.
func (n node) run(ctx context.Context, s *store.Script, keys []string, args ...any) (store.Values, error) {
	if ctx.Err() != nil {
		return nil, store.Classify(ctx.Err())
	}
	call, done := context.WithTimeout(context.WithoutCancel(ctx), n.timeout)
	defer done()
	type reply struct {
		v   any
		err error
	}
	replied := make(chan reply, 1)
	go func() {
		v, err := s.Run(call, n.rdb, keys, args)
		replied <- reply{v, err}
	}()
	var got reply
	select {
	case got = <-replied:
	case <-call.Done():
		got.err = store.Classify(call.Err())
	case <-ctx.Done():
		select {
		case got = <-replied:
		case <-time.After(n.timeout / 5):
			got.err = store.Classify(ctx.Err())
		}
	}
	if got.err != nil {
		return nil, got.err
	}
	values, err := store.ValuesOf(got.v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return values, nil
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
