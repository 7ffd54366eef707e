package queue

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Sealed says how many tasks need which key.
type Sealed struct {
	Tasks map[string]int // by the ID of the key
	Whole bool           // all records were read; else only the first 64 MiB of them
}

// sealedBytes bounds what CountSealed reads.
const sealedBytes = 64 << 20

// CountSealed counts the tasks whose payloads are encrypted, by key.
func (q *Queue) CountSealed(ctx context.Context) (Sealed, error) {
	out, size := Sealed{Tasks: map[string]int{}}, 0
	for cursor := uint64(0); size < sealedBytes; {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Tasks, cursor, "", claimRecords).Result()
		if err != nil {
			return out, fmt.Errorf("count encrypted tasks: %w", store.Classify(err))
		}
		for i := 0; i+1 < len(kv); i += 2 {
			size += len(kv[i+1])
			if t := (task.Task{ID: kv[i]}); task.Decode(kv[i+1], &t) == nil && t.Sealed != nil {
				out.Tasks[t.Sealed.Key]++
			}
		}
		if cursor = next; cursor == 0 {
			out.Whole = true
			break
		}
	}
	return out, nil
}
