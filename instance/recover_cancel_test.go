package instance

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A caller that cancels a task whose instance is already gone is told that the task runs. So the task must not run again when
// it is taken back.
func TestRecover_honoursACancelThatNobodyHeard(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		lost := r.up("lost", "")
		r.open(lost)
		r.add(&task.Task{ID: "victim", Type: "t"}, &task.Task{ID: "other", Type: "t"})
		r.wantClaims(lost, 2)
		if where, err := r.q.Cancel(t.Context(), "victim", "by hand", false); err != nil || where != task.Running {
			t.Fatalf("cancel: %v, %v", where, err)
		}
		r.expire(lost, time.Millisecond)
		r.up("next", "")
		m, err := New(r.q.Client(), r.p.Namespace, Config{ID: "recoverer"})
		must(t, err)
		if _, err := m.recover(t.Context(), lost.gen); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]task.State{"victim": task.Dead, "other": task.Due} {
			found, err := r.q.Task(t.Context(), id)
			must(t, err)
			if found.State != want {
				t.Errorf("%s is %s, want %s: %q", id, found.State, want, found.Task.LastError())
			}
		}
	})
}
