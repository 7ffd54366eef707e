package consumer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A run that is behind is not cancelled for one that replaces those on time.
func TestCancel_replacingSparesWhatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	begun, replaced := make(chan string, 10), make(chan string, 10)
	n := w.start(one(t, func(ctx context.Context, x *task.Task) error {
		begun <- x.ID
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrReplaced) {
				replaced <- x.ID
			}
			return ctx.Err()
		case <-time.After(patience):
		}
		return nil
	}), concurrency(5))
	w.leads(n)
	add := func(id string, c task.Overlap) {
		x := job(id)
		x.Key, x.KeyLimit, x.Overlap = "k", 2, c
		w.add(x)
	}
	add("behind", task.Behind)
	<-begun
	add("first", task.Replace)
	<-begun
	add("second", task.Replace)
	if id := <-replaced; id != "first" {
		t.Errorf("%s was replaced", id)
	}
	<-begun // the second, in the place of the first
	if len(replaced) > 0 {
		t.Errorf("%s was replaced too", <-replaced)
	}
}
