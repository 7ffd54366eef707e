package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Claim is a generation's claim of a task, as the running hash has it.
type Claim struct {
	Task   *task.Task
	Value  string // the claim's text in the running hash: recover.lua compares it
	Record string
	Err    error // why the record could not be read; Task then has only the ID and the claim's fields
}

// claimsTimeout bounds each call.
const claimsTimeout = 5 * time.Second

// Claims reads all claims of a generation, and the last seq that Redis saw of it. A consumer calls it when a reply was lost;
// an instance that recovers a dead generation calls it for the claims to take back. Instance becomes the tasks' Instance.
//
// Claims leaves out tasks that ended while it read. It reads a few records at a time, so that any number of records of any
// size gets through. Each of its calls to Redis may take 5 s.
func (q *Queue) Claims(ctx context.Context, gen int64, instance string) ([]Claim, int64, error) {
	var claims []Claim
	var seq int64
	var cursor uint64
	seen := map[string]bool{}
	for {
		call, done := context.WithTimeout(ctx, claimsTimeout)
		kv, next, err := q.rdb.HScan(call, q.keys.Running(gen), cursor, "", MaxBatch).Result()
		done()
		if err != nil {
			return nil, 0, fmt.Errorf("read the claims of generation %d: %w", gen, store.Classify(err))
		}
		var ids, values []string
		for i := 0; i+1 < len(kv); i += 2 {
			if kv[i] == "" {
				seq, _ = strconv.ParseInt(kv[i+1], 10, 64)
			} else if !seen[kv[i]] {
				seen[kv[i]] = true
				ids, values = append(ids, kv[i]), append(values, kv[i+1])
			}
		}
		if claims, err = q.appendClaims(ctx, claims, ids, values, instance); err != nil {
			return nil, 0, err
		}
		if cursor = next; cursor == 0 {
			return claims, seq, nil
		}
	}
}

func (q *Queue) appendClaims(ctx context.Context, claims []Claim, ids, values []string, instance string) ([]Claim, error) {
	for len(ids) > 0 {
		call, done := context.WithTimeout(ctx, claimsTimeout)
		records, err := q.records(call, ids)
		done()
		if err != nil {
			return nil, err
		}
		for i, value := range records {
			rec, ok := value.(string)
			if !ok {
				continue
			}
			t := &task.Task{ID: ids[i]}
			c := Claim{Task: t, Value: values[i], Record: rec, Err: task.Decode(rec, t)}
			if fence, at, due, ok := parseClaim(values[i]); ok {
				claimed(t, at, fence, instance, due)
			}
			claims = append(claims, c)
		}
		ids, values = ids[len(records):], values[len(records):]
	}
	return claims, nil
}
