package queue

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

const (
	// leastEntry is about the smallest entry of a history, in bytes: Caps.Archive follows from it, so that bytes decide.
	leastEntry = 128
	// assumedEntry is what an entry counts where Redis does not tell how much memory a stream takes.
	assumedEntry = 512
	// sampledNodes is how many nodes of a stream Redis weighs, the oldest: 5 ms of its time. The others count as the mean of
	// these. A node is about 4 KiB, or one entry if that is larger, so 400 MB of a stream are weighed exactly.
	sampledNodes = 100_000
	// mostCuts is how many scripts trim in one call of TrimToBuffer.
	mostCuts = 20
)

// Buffer is the part of the history and of the runs of other tasks that Redis keeps, together.
type Buffer struct {
	Bytes   int64
	Entries int64
	// Assumed is why Bytes is a guess, 512 for each entry: Redis refuses MEMORY USAGE. Nil if it does not.
	Assumed error
}

// TrimToBuffer removes the oldest entries of the history and of the runs of other tasks until they take no more than
// [Caps].Buffer together, whether an archive has them or not: the larger of the two gives first. It returns how many entries it
// removed, and what is left. One call removes at most 200,000. Entries leave by the node, so an excess of less than a node stays.
// Without Caps.Buffer nothing is removed. The user needs the right to XTRIM, and should have that to MEMORY USAGE.
func (q *Queue) TrimToBuffer(ctx context.Context) (removed int64, left Buffer, err error) {
	for range mostCuts {
		sides, b, err := q.weigh(ctx)
		if err != nil || q.caps.Buffer <= 0 || b.Bytes <= q.caps.Buffer {
			return removed, b, err
		}
		n, err := q.cut(ctx, sides, b.Bytes-q.caps.Buffer)
		if removed += n; err != nil || n == 0 {
			return removed, b, err
		}
	}
	_, left, err = q.weigh(ctx)
	return removed, left, err
}

// side is one of the streams that share the buffer.
type side struct {
	key    string
	stream Stream
	bytes  int64
}

// weigh asks Redis how large the streams are.
func (q *Queue) weigh(ctx context.Context) (sides [2]side, b Buffer, err error) {
	pipe := q.rdb.Pipeline()
	var infos [2]*redis.XInfoStreamCmd
	var sizes [2]*redis.IntCmd
	for i, key := range []string{q.keys.History, q.keys.Runs} {
		sides[i].key = key
		infos[i], sizes[i] = pipe.XInfoStream(ctx, key), pipe.MemoryUsage(ctx, key, sampledNodes)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i := range sides {
		s := &sides[i]
		s.stream = streamOf(infos[i])
		s.bytes, err = sizes[i].Result()
		switch err := store.Classify(err); {
		case err == nil, errors.Is(err, redis.Nil):
		case unanswered(err) != nil || store.Retryable(err):
			return sides, b, fmt.Errorf("look how large %s is: %w", s.key, err)
		default: // the user may not ask, or this Redis does not know the command
			b.Assumed, s.bytes = err, s.stream.Length*assumedEntry
		}
		b.Bytes, b.Entries = b.Bytes+s.bytes, b.Entries+s.stream.Length
	}
	return sides, b, nil
}

// cut removes so many bytes from the larger stream, or half of it if that is less: then the other one may be the larger.
func (q *Queue) cut(ctx context.Context, sides [2]side, bytes int64) (int64, error) {
	s := sides[0]
	if sides[1].bytes > s.bytes {
		s = sides[1]
	}
	part := min(float64(bytes)/float64(s.bytes), 0.5)
	return q.trim(ctx, s.key, s.stream, int(s.stream.Length)-int(math.Ceil(part*float64(s.stream.Length))), "")
}
