package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// node is an onbeat instance that can be started, stopped and cut off, and that says when it took its first task.
type node struct {
	rdb   redis.UniversalClient
	stop  func() error
	from  time.Time
	first atomic.Int64 // ns after from, of the first probe
	knows atomic.Int64 // the same, of the moment from which it pushes the slots of all schedules
	slot  atomic.Pointer[slotTally]
}

// newNode starts an instance with declared schedules, if any. Its time runs from here.
func newNode(ctx context.Context, o *peer.Onbeat, declared []producer.Schedule, concurrency int) (*node, error) {
	rdb, err := o.Dial()
	if err != nil {
		return nil, err
	}
	n := &node{rdb: rdb}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: peer.Namespace, Concurrency: concurrency, Log: zerolog.New(n)})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		d.Handle("bench", handlers.Func(func(context.Context, *task.Task) error {
			n.first.CompareAndSwap(0, int64(time.Since(n.from)))
			return nil
		})),
		d.Handle("beat", handlers.Func(func(_ context.Context, t *task.Task) error {
			if s := n.slot.Load(); s != nil {
				s.handle(t)
			}
			return nil
		})))
	if err == nil && declared != nil {
		err = d.Declare(declared)
	}
	if err != nil {
		return nil, err
	}
	n.from = time.Now()
	n.stop = peer.Run(ctx, d)
	return n, nil
}

// Write is given what the instance logs: it says when it has taken stock of the schedules.
func (n *node) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"message":"scheduling"`)) {
		n.knows.CompareAndSwap(0, int64(time.Since(n.from)))
	}
	return len(line), nil
}

// took is how long it was until the node took a task, and until it knew all schedules, in milliseconds.
func (n *node) took() (first, knows float64, err error) {
	for until := time.Now().Add(2 * patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if d, k := n.first.Load(), n.knows.Load(); d != 0 && k != 0 {
			return ms(time.Duration(d)), ms(time.Duration(k)), nil
		}
	}
	return 0, 0, fmt.Errorf("an instance did not take over in %s", 2*patience)
}

// again makes took run from now.
func (n *node) again() {
	n.from = time.Now()
	n.first.Store(0)
	n.knows.Store(0)
}

// slotTally counts the tasks of one slot.
type slotTally struct {
	*tally
	at   time.Time
	late []time.Duration
}

// expect makes the node count a slot.
func (n *node) expect(at time.Time, jobs int) *slotTally {
	s := &slotTally{tally: newTally(jobs, jobs), at: at, late: make([]time.Duration, jobs)}
	n.slot.Store(s)
	return s
}

func (s *slotTally) handle(t *task.Task) {
	now := time.Now()
	if !t.Slot.Equal(s.at) {
		return
	}
	job := 0
	for _, c := range t.Payload {
		job = job*10 + int(c-'0')
	}
	if job < len(s.late) {
		s.late[job] = now.Sub(s.at)
	}
	s.tally.handle(job)
}

// prober adds a due task every few milliseconds. The process that takes one leads, and the gate is open.
type prober struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newProber(ctx context.Context, o *peer.Onbeat) *prober {
	p := &prober{}
	ctx, p.cancel = context.WithCancel(ctx)
	p.ended.Go(func() {
		for ctx.Err() == nil {
			_ = o.One(ctx, peer.Task{Bytes: 64}) // one that fails is followed by another
			time.Sleep(5 * time.Millisecond)
		}
	})
	return p
}

func (p *prober) stop() {
	p.cancel()
	p.ended.Wait()
}

// takeOvers measures how long it takes until another instance works, and knows all schedules: a newer one that starts, the old one when the
// newer resigns, and when the newer is cut off from Redis (which includes its lease). a is the one that runs, or nil.
func takeOvers(ctx context.Context, o *peer.Onbeat, a *node, declared []producer.Schedule, m wire.Metrics) (err error) {
	probes := newProber(ctx, o)
	defer probes.stop()
	const concurrency = 10
	if a == nil {
		if a, err = newNode(ctx, o, declared, concurrency); err != nil {
			return err
		}
		if m["startup_ms"], _, err = a.took(); err != nil {
			return err
		}
	}
	b, err := newNode(ctx, o, declared, concurrency)
	if err != nil {
		return err
	}
	if m["takeover_newer_ms"], m["takeover_newer_knows_ms"], err = b.took(); err != nil {
		return err
	}

	a.again()
	if err := errors.Join(b.stop(), b.rdb.Close()); err != nil {
		return err
	}
	if m["takeover_resign_ms"], m["takeover_resign_knows_ms"], err = a.took(); err != nil {
		return err
	}

	if b, err = newNode(ctx, o, declared, concurrency); err != nil {
		return err
	}
	if _, _, err = b.took(); err != nil {
		return err
	}
	a.again()
	if err := b.rdb.Close(); err != nil { // as if the cable had been pulled
		return err
	}
	if m["takeover_crash_ms"], m["takeover_crash_knows_ms"], err = a.took(); err != nil {
		return err
	}
	_ = b.stop() // it cannot say goodbye
	probes.stop()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if c, err := o.Admin().Activity.Counts(ctx); err == nil && c.Overdue+c.Running == 0 {
			break // every probe is done
		}
	}
	return errors.Join(a.stop(), a.rdb.Close())
}
