package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// Claim is what a generation holds of a task, as it lies in the running hash.
type Claim struct {
	Task   *task.Task
	Value  string // as it lies there: recover.lua compares it
	Record string
	Err    error // the record could not be read; Task has only ID and fence
}

// claimRecords is how many records are read by one call, and claimsTimeout bounds each.
const (
	claimRecords  = 32
	claimsTimeout = 5 * time.Second
)

// Claims reads all that a generation holds, and the last seq that Redis saw of it. It is how a consumer learns what it
// has claimed when a reply was lost, and what is to be recovered of a dead generation. Tasks that ended while it was
// read are left out. Records are read a few at a time, so that any number of them, of any size, comes through; each call
// has claimsTimeout.
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
			return nil, 0, fmt.Errorf("read what generation %d runs: %w", gen, store.Classify(err))
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
		for from := 0; from < len(ids); from += claimRecords {
			to := min(from+claimRecords, len(ids))
			if claims, err = q.appendClaims(ctx, claims, ids[from:to], values[from:to], instance); err != nil {
				return nil, 0, err
			}
		}
		if cursor = next; cursor == 0 {
			return claims, seq, nil
		}
	}
}

func (q *Queue) appendClaims(ctx context.Context, claims []Claim, ids, values []string, instance string) ([]Claim, error) {
	ctx, done := context.WithTimeout(ctx, claimsTimeout)
	defer done()
	records, err := q.rdb.HMGet(ctx, q.keys.Tasks, ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("read records: %w", store.Classify(err))
	}
	for i, id := range ids {
		rec, ok := records[i].(string)
		if !ok {
			continue
		}
		t := &task.Task{ID: id}
		c := Claim{Task: t, Value: values[i], Record: rec, Err: task.Decode(rec, t)}
		if fence, at, due, ok := parseClaim(values[i]); ok {
			claimed(t, at, fence, instance, due)
		}
		claims = append(claims, c)
	}
	return claims, nil
}
