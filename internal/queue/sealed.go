package queue

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Sealed says how many tasks need which key.
type Sealed struct {
	Tasks map[string]int // by the ID of the key
	// Closed are those of them that do not open with the keys that were given: the key is not among them, or is another one.
	Closed map[string]int
	Whole  bool // all records were read; else only the first 64 MiB of them
}

// sealedBytes bounds what CountSealed reads.
const sealedBytes = 64 << 20

// CountSealed counts the tasks whose payloads are encrypted, by key, and tries to open them.
func (q *Queue) CountSealed(ctx context.Context, keys *seal.Keys) (Sealed, error) {
	out, size := Sealed{Tasks: map[string]int{}, Closed: map[string]int{}}, 0
	part := firstScan
	for cursor := uint64(0); size < sealedBytes; {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Tasks, cursor, "", int64(part)).Result()
		if err != nil {
			return out, fmt.Errorf("count encrypted tasks: %w", store.Classify(err))
		}
		part.took(kv)
		for i := 0; i+1 < len(kv); i += 2 {
			size += len(kv[i+1])
			t := task.Task{ID: kv[i]}
			if task.Decode(kv[i+1], &t) != nil || t.Sealed == nil {
				continue
			}
			out.Tasks[t.Sealed.Key]++
			if keys.OpenTask(&t) != nil {
				out.Closed[t.Sealed.Key]++
			}
		}
		if cursor = next; cursor == 0 {
			out.Whole = true
			break
		}
	}
	return out, nil
}
