package outbox

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// handlers.Once tells effects apart by the ID of a task and by when it was created. Both are those that the caller's transaction
// wrote, whichever mover moves the row, beside whichever others, and however often it is moved.
func TestMover_movesATaskAsItWasCreated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const n = 100
		list := jobs("named", n)
		for i := range n {
			list = append(list, task.New("job", i)) // the ID of such a task says when it was created
		}
		w.add(list...)
		created := w.created()
		same := func(when string) {
			t.Helper()
			got := w.records()
			if len(got) != 2*n || len(created) != 2*n {
				t.Fatalf("%s: %d of %d tasks", when, len(got), len(created))
			}
			for id, x := range got {
				if was := created[id]; was.IsZero() || !x.Created.Equal(was) {
					t.Errorf("%s: %s was created at %v, and in the table at %v", when, id, x.Created, was)
				}
			}
		}
		time.Sleep(10 * time.Millisecond) // a mover's own time would be another one
		w.die(w.mover())
		same("after a move that was not committed")
		w.die(w.mover())
		same("after the same move again")
		w.run(w.mover())
		w.run(w.mover())
		testredis.Eventually(t, patience, func() bool { return w.rows() == 0 }, "two movers have moved all")
		same("after two movers at once")
	})
}

// A task that a program adds again has the same ID and time of creation, so it is the same effect.
func TestAdd_ofTheSameTaskAgainIsOfTheSameEffect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		var seen []*task.Task
		for _, x := range []*task.Task{task.New("job", nil), task.New("job", nil, task.ID("named"))} {
			for range 2 {
				w.add(x)
				w.drain(w.mover())
				seen = append(seen, w.records()[x.ID])
				w.consume(map[string]int{})
				time.Sleep(2 * time.Millisecond) // the second time is another
			}
			if a, b := seen[0], seen[1]; a == nil || b == nil || !a.Created.Equal(b.Created) || !a.Created.Equal(x.Created) {
				t.Errorf("the first came as %+v, the second as %+v", a, b)
			}
			seen = nil
		}
	})
}

// created returns when each task of the table was created.
func (w *world) created() map[string]time.Time {
	w.Helper()
	rows, err := w.db.QueryContext(w.Context(), "SELECT task, record FROM onbeat_outbox")
	w.must(err)
	defer func() { _ = rows.Close() }()
	all := map[string]time.Time{}
	for rows.Next() {
		var id string
		var record []byte
		w.must(rows.Scan(&id, &record))
		t := &task.Task{}
		w.must(decode(t, id, record))
		all[id] = t.Created
	}
	w.must(rows.Err())
	return all
}
