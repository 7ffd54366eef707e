package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
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

func (r *raw) Bulk(ctx context.Context, tasks []work) error {
	scores := make([]any, 0, 4*len(tasks)+1)
	records := make([]any, 0, 2*len(tasks))
	now := time.Now()
	for _, t := range tasks {
		due, id := t.due, r.id(t.n)
		if due.IsZero() {
			due = now
		}
		scores = append(scores, due.UnixMilli(), id)
		records = append(records, id, t.payload())
	}
	return r.add.EvalSha(ctx, r.rdb, []string{rawDue, rawTasks}, append(scores, records...)...).Err()
}

func (r *raw) One(ctx context.Context, w work) error { return r.Bulk(ctx, []work{w}) }

// Dispatch runs callers that each settle what they took and take the next, in one call. The concurrency of raw is how
// many tasks a caller takes at once.
func (r *raw) Dispatch(ctx context.Context, o options, handle func(n int)) error {
	for range max(o.servers, 1) {
		go func() {
			if err := r.work(ctx, o.concurrency, handle); ctx.Err() == nil {
				panic(err)
			}
		}()
	}
	return nil
}

func (r *raw) work(ctx context.Context, batch int, handle func(n int)) error {
	var settle []string
	for {
		args := make([]any, 0, 2+len(settle))
		args = append(args, batch, rawLease.Milliseconds())
		for _, id := range settle {
			args = append(args, id)
		}
		v, err := r.step.EvalSha(ctx, r.rdb, []string{rawDue, rawTasks, rawRunning}, args...).Slice()
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
		if len(ids) == 0 {
			next, _ := strconv.ParseFloat(fmt.Sprint(v[2]), 64)
			time.Sleep(min(10*time.Millisecond, max(time.Duration(next)*time.Millisecond, time.Millisecond)))
		}
	}
}

func (r *raw) Left(ctx context.Context) (int64, error) {
	due, err1 := r.rdb.ZCard(ctx, rawDue).Result()
	running, err2 := r.rdb.ZCard(ctx, rawRunning).Result()
	return due + running, errors.Join(err1, err2)
}

func (r *raw) Calls() int64 { return r.calls.n.Load() }
