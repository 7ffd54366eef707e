package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// TestGroup_property: if a caller was told that its task was added, Redis has the task once; if it was told that nothing was
// added, Redis does not have it. This holds whenever the callers' contexts end, and although they use the task again.
func TestGroup_property(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		const callers, each = 1000, 3
		errs := make([][each]error, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for j := range each {
					errs[i][j] = w.hurried(i, j)
				}
			})
		}
		all.Wait()
		found := w.payloads()
		var added, left, open int
		for i := range errs {
			for j, err := range errs[i] {
				name := fmt.Sprint(i, " ", j)
				n := found[name]
				delete(found, name)
				switch {
				case err == nil && n == 1:
					added++
				case errors.Is(err, task.ErrUnreachable) && errors.Is(err, context.DeadlineExceeded) && n <= 1:
					open++
				case err != nil && n == 0:
					left++
					wantNotAdded(t, err, context.DeadlineExceeded)
				default:
					t.Errorf("%s is there %d times: %v", name, n, err)
				}
			}
		}
		if t.Logf("%d added, %d not, %d open", added, left, open); len(found) > 0 || added == 0 || left == 0 {
			t.Errorf("%d tasks nobody added: %v", len(found), found)
		}
	})
}

// hurried enqueues, nine times of ten with little time, and then uses the task for something else.
func (w *world) hurried(i, j int) error {
	ctx := w.Context()
	if i%10 != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(60*time.Millisecond))
		defer cancel()
	}
	t := task.New("job", fmt.Append(nil, i, " ", j), task.Queue([]string{"a", "b"}[i%2]))
	if i%3 == 0 {
		t.ID = fmt.Sprint("own-", i, "-", j)
	}
	_, err := w.p.Enqueue(ctx, t)
	clear(t.Payload)
	t.Type, t.Queue = "other", "other"
	return err
}

// payloads counts the tasks of each payload, and fails where one is not due.
func (w *world) payloads() map[string]int {
	w.Helper()
	ctx := context.Background()
	due := map[string]bool{}
	for _, on := range []string{"a", "b"} {
		for _, id := range w.rdb.ZRange(ctx, w.q.Keys().Due(queue.Lane{Queue: on, Type: "job"}), 0, -1).Val() {
			due[id] = true
		}
	}
	found := map[string]int{}
	for id, rec := range w.rdb.HGetAll(ctx, w.q.Keys().Tasks).Val() {
		tk := task.Task{ID: id}
		must(w, task.Decode(rec, &tk))
		found[string(tk.Payload)]++
		if !due[id] {
			w.Errorf("%s is not due", id)
		}
	}
	return found
}
