package consumer

import (
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
)

// One call settles no more than can be sent in time: large records go a few at a time, and each one goes in the end.
func TestBatch_isBoundedInBytes(t *testing.T) {
	t.Parallel()
	settle := func(n, size int) []queue.Settlement {
		list := make([]queue.Settlement, n)
		for i := range list {
			list[i].Record = make([]byte, size)
		}
		return list
	}
	for _, c := range []struct{ n, size, want int }{
		{0, 0, 0}, {3, 0, 3}, {queue.MaxBatch + 1, 10, queue.MaxBatch},
		{2, 2 * batchBytes, 1}, {1, 2 * batchBytes, 1}, {9, batchBytes / 4, 4},
	} {
		consumer := &Consumer{settled: settle(c.n, c.size)}
		if got := len(consumer.batch()); got != c.want {
			t.Errorf("%d of %d bytes: %d go, want %d", c.n, c.size, got, c.want)
		}
	}
}
