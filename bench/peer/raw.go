package peer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed raw_add.lua
	rawAdd string
	//go:embed raw_step.lua
	rawStep string
)

// raw is the fewest Redis commands that could do the same work: a sorted set of due times, a hash of payloads, and an
// in-flight entry a task, so that a crash loses none. It has no leader, no retry, no fence: it is the limit, not a
// dispatcher.
type raw struct {
	rdb   *redis.Client
	add   *redis.Script
	step  *redis.Script
	calls counter
	next  atomic.Int64
}

const (
	rawDue     = "raw:{bench}:due"
	rawTasks   = "raw:{bench}:tasks"
	rawRunning = "raw:{bench}:running"
)

// rawLease is when an in-flight entry would be taken back.
const rawLease = 30 * time.Second

func newRaw(ctx context.Context, addr string) (*raw, error) {
	r := &raw{rdb: redis.NewClient(&redis.Options{Addr: addr}), add: redis.NewScript(rawAdd), step: redis.NewScript(rawStep)}
	r.rdb.AddHook(&r.calls)
	return r, errors.Join(r.add.Load(ctx, r.rdb).Err(), r.step.Load(ctx, r.rdb).Err())
}

// id is as long as an ID that onbeat makes.
func (r *raw) id(n int) string { return fmt.Sprintf("%08x%012d", r.next.Add(1), n) }

func (r *raw) Bulk(ctx context.Context, tasks []Task) error {
	scores := make([]any, 0, 4*len(tasks)+1)
	records := make([]any, 0, 2*len(tasks))
	now := time.Now()
	for _, t := range tasks {
		due, id := t.Due, r.id(t.N)
		if due.IsZero() {
			due = now
		}
		scores = append(scores, due.UnixMilli(), id)
		records = append(records, id, payload(t))
	}
	return r.add.EvalSha(ctx, r.rdb, []string{rawDue, rawTasks}, append(scores, records...)...).Err()
}

func (r *raw) One(ctx context.Context, t Task) error { return r.Bulk(ctx, []Task{t}) }

// Dispatch runs callers that each settle what they took and take the next, in one call. What raw's concurrency means
// is how many it takes at once.
func (r *raw) Dispatch(ctx context.Context, o Options, handle Handler) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	failed := make(chan error, max(o.Servers, 1))
	for range max(o.Servers, 1) {
		all.Go(func() { failed <- r.work(ctx, o.Concurrency, handle) })
	}
	return func() error {
		cancel()
		all.Wait()
		close(failed)
		var err error
		for e := range failed {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

func (r *raw) work(ctx context.Context, batch int, handle Handler) error {
	var settle []string
	for {
		want := batch
		if ctx.Err() != nil {
			if want = 0; len(settle) == 0 {
				return nil
			}
		}
		args := make([]any, 0, 2+len(settle))
		args = append(args, want, rawLease.Milliseconds())
		for _, id := range settle {
			args = append(args, id)
		}
		v, err := r.step.EvalSha(context.WithoutCancel(ctx), r.rdb, []string{rawDue, rawTasks, rawRunning}, args...).Slice()
		if err != nil {
			return err
		}
		settle = settle[:0]
		ids, bodies := v[0].([]any), v[1].([]any)
		for i := range ids {
			body, _ := bodies[i].(string)
			handle(number(body))
			settle = append(settle, ids[i].(string))
		}
		if len(ids) == 0 && want > 0 {
			next, _ := strconv.ParseFloat(fmt.Sprint(v[2]), 64)
			wait := min(10*time.Millisecond, time.Duration(next)*time.Millisecond)
			select {
			case <-time.After(max(wait, time.Millisecond)):
			case <-ctx.Done():
			}
		}
	}
}

func (r *raw) Left(ctx context.Context) (int64, error) {
	due, err1 := r.rdb.ZCard(ctx, rawDue).Result()
	running, err2 := r.rdb.ZCard(ctx, rawRunning).Result()
	return due + running, errors.Join(err1, err2)
}

func (r *raw) Calls() int64 { return r.calls.n.Load() }

func (r *raw) Close() error { return r.rdb.Close() }
