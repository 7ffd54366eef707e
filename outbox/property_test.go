package outbox

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Each task whose transaction committed comes once, and no other, in any order of commits, crashes of movers and runs of tasks.
func TestMover_property(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, onSQLite(t), rdb)
		want, counts := map[string]bool{}, map[string]int{}
		made := 0
		add := func(commit bool) {
			var list []*task.Task
			for range rapid.IntRange(1, 5).Draw(r, "tasks") {
				made++
				list = append(list, task.New("job", made, task.ID(fmt.Sprint(made)), task.Keep(-1)))
				if rapid.Bool().Draw(r, "unique") {
					list[len(list)-1].Apply(task.Unique(fmt.Sprint(made), 0))
				}
			}
			tx, err := w.db.BeginTx(t.Context(), nil)
			w.must(err)
			w.must(w.box.Add(t.Context(), tx, list...))
			if !commit {
				w.must(tx.Rollback())
				return
			}
			w.must(tx.Commit())
			for _, t := range list {
				want[t.ID] = true
			}
		}
		m := w.mover()
		r.Repeat(map[string]func(*rapid.T){
			"commit":    func(*rapid.T) { add(true) },
			"roll back": func(*rapid.T) { add(false) },
			"die":       func(r *rapid.T) { m.most = rapid.IntRange(1, 9).Draw(r, "most"); w.die(m) },
			"move": func(r *rapid.T) {
				m.most = rapid.IntRange(1, 9).Draw(r, "most")
				_, err := m.turn(t.Context())
				w.must(err)
			},
			"tasks run": func(*rapid.T) { w.consume(counts) },
			"another":   func(*rapid.T) { m = w.mover() },
		})
		w.drain(m)
		w.consume(counts)
		if w.rows() != 0 || len(counts) != len(want) {
			r.Fatalf("%d tasks came, %d were committed, %d rows stay", len(counts), len(want), w.rows())
		}
		for id, n := range counts {
			if n != 1 || !want[id] {
				r.Fatalf("task %s came %d times, committed: %t", id, n, want[id])
			}
		}
	})
}
