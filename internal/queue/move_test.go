package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// move moves tasks under their IDs as marks, and returns by what each was refused.
func (w *world) move(began time.Time, list ...*task.Task) []string {
	w.Helper()
	m := queue.Moving{Began: began, Marks: map[*task.Task]string{}}
	for _, t := range list {
		m.Marks[t] = "of " + t.ID
	}
	refused, added, err := w.q.Move(w.Context(), list, m)
	w.must(err)
	same(w, "dealt with", added, len(list))
	by := make([]string, len(list))
	for i, err := range refused {
		var taken *task.Refused
		if errors.As(err, &taken) {
			by[i] = taken.By
		} else if err != nil {
			by[i] = err.Error()
		}
	}
	return by
}

// A task that was moved is not added again, whatever became of it, until its mark has gone.
func TestMove_addsEachOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		equal(t, "the first time", w.move(w.now(), job("x"), job("y", task.In(time.Hour))), []string{"", ""})
		a.cycle(0, lanesOf("job"), allFinished(a.claim(1, lanesOf("job")))...)
		same(t, "known", rdb.HExists(t.Context(), w.keys.Tasks, "x").Val(), false)
		equal(t, "again, with a new one", w.move(w.now(), job("x"), job("z"), job("y")), []string{"moved", "", "moved"})
		equal(t, "claimed", sortedIDs(a.claim(1, lanesOf("job"))), []string{"z"})
		if ttl := rdb.PTTL(t.Context(), w.keys.Moved("of x")).Val(); ttl < 29*24*time.Hour {
			t.Errorf("the mark stays for %s while the other store holds the task", ttl)
		}
		w.must(w.q.Moved(t.Context(), []string{"of x", "of nothing"}))
		if ttl := rdb.PTTL(t.Context(), w.keys.Moved("of x")).Val(); ttl <= queue.MoveWithin || ttl > 5*time.Minute {
			t.Errorf("the mark stays for %s after that", ttl)
		}
	})
}

// A caller that stood still, while another moved its tasks and let the marks go, adds nothing.
func TestMove_thatIsLateAddsNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		began := w.now().Add(-queue.MoveWithin - time.Second)
		x := job("x")
		_, added, err := w.q.Move(t.Context(), []*task.Task{x}, queue.Moving{Began: began, Marks: map[*task.Task]string{x: "m"}})
		if !errors.Is(err, queue.ErrLate) || added != 0 {
			t.Errorf("%d added: %v", added, err)
		}
		same(t, "keys", rdb.Exists(t.Context(), w.keys.Tasks, w.keys.Moved("m")).Val(), 0)
	})
}

// The same ID comes again under another mark: that is another task, which is refused only while the first is known.
func TestMove_refusesAsEnqueueDoes(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.add(job("x"))
		unique := task.Unique("u", time.Hour)
		equal(t, "refused by", w.move(w.now(), job("x"), job("y", unique), job("z", unique), job("y")), []string{"id", "", "unique", "id"})
		for mark, want := range map[string]int64{"of x": 0, "of y": 1, "of z": 0} {
			same(t, "mark "+mark, rdb.Exists(t.Context(), w.keys.Moved(mark)).Val(), want)
		}
		equal(t, "again", w.move(w.now(), job("y", unique), job("z", unique)), []string{"moved", "unique"})
	})
}

func TestMove_splitsLargeBatches(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		const n = queue.MaxBatch + 500
		for range 2 {
			for i, by := range w.move(w.now(), jobs("j", n)...) {
				if by != "" && by != "moved" {
					t.Fatalf("task %d: %s", i, by)
				}
			}
		}
		same(t, "records", rdb.HLen(t.Context(), w.keys.Tasks).Val(), n)
	})
}

// If Redis refuses the marks, nothing is added.
func TestMove_isWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	w := worldIn(t, admin, ns)
	rules := []string{"~onbeat:{" + ns + "}:*", "&*", "+@all", "-set"}
	q, err := queue.New(testredis.User(t, admin, rules), w.part, queue.Caps{})
	w.must(err)
	x := job("x")
	_, _, err = q.Move(t.Context(), []*task.Task{x}, queue.Moving{Began: w.now(), Marks: map[*task.Task]string{x: "m"}})
	if !errors.Is(err, task.ErrDenied) {
		t.Fatal(err)
	}
	same(t, "records", admin.HLen(t.Context(), w.keys.Tasks).Val(), 0)
	same(t, "due", fmt.Sprint(admin.ZCard(t.Context(), w.keys.Due(lane("job"))).Val()), "0")
}
