package queue_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// As long as no other program writes, no count is ever wrong: of runs, of lost instances' runs, of keys and of limits.
func TestRecount_findsNothingWrong(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	s := newStock(t, admin, admin)
	before := s.contents()
	if n := s.rdb.HLen(t.Context(), s.keys.Active).Val(); n < 3 {
		t.Fatalf("%d counts: the test is of nothing", n)
	}
	wrong, err := s.q.Recount(t.Context())
	s.must(err)
	same(t, "wrong", wrong, 0)
	s.as(t, before)
}

// If the counts are written over, those of the running tasks are there again: no task runs beside them that may not.
func TestRecount_holdsWhatRuns(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(keyed("k1", "k", 1, task.Wait, 1), task.New("limited", nil, task.ID("l1")))
		lanes := append(lanesOf("job"), queue.LaneClaim{Lane: lane("limited"), Limit: 1})
		running := a.claim(2, lanes)
		w.must(rdb.Set(t.Context(), w.keys.Active, "not ours", 0).Err())
		_, err := w.q.Mend(t.Context(), nil)
		w.must(err)
		w.add(keyed("k2", "k", 1, task.Wait, 2), task.New("limited", nil, task.ID("l2")))
		same(t, "claimed beside those that run", len(a.cycle(2, lanes).Claimed), 0)
		a.cycle(0, lanes, finished(running[0]), finished(running[1]))
		a.claim(2, lanes)
	})
}

// Tasks go on that wait for a key or a limit, if the runs that held it do not exist any more.
func TestRecount_letsGoOn(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(t *testing.T, w *world, a *inst){
		"the claims are overwritten": func(t *testing.T, w *world, a *inst) {
			w.must(w.rdb.Set(w.Context(), w.keys.Running(a.gen), "not ours", 0).Err())
			_, err := w.q.Mend(w.Context(), nil)
			w.must(err)
		},
		"the counts are overwritten": func(t *testing.T, w *world, a *inst) {
			w.must(w.rdb.HSet(w.Context(), w.keys.Running(a.gen), "k1", "x", "l1", "x").Err())
			w.must(w.rdb.ZAdd(w.Context(), w.keys.Orphans, redis.Z{Member: strings.Repeat("9", 40)}).Err())
			w.must(w.rdb.HSet(w.Context(), w.keys.Members, "nobody", strings.Repeat("9", 40)+" 1 r 0 newest newest v1").Err())
			w.must(w.rdb.HSet(w.Context(), w.keys.Active, "k:k", "9", "t:limited", "rubbish", "k:of nobody", "-1").Err())
			wrong, err := w.q.Recount(w.Context())
			w.must(err)
			same(t, "wrong", wrong, 3)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				a := w.join("a")
				w.add(keyed("k1", "k", 1, task.Wait, 1), task.New("limited", nil, task.ID("l1")))
				lanes := append(lanesOf("job"), queue.LaneClaim{Lane: lane("limited"), Limit: 1})
				a.claim(2, lanes)
				w.add(keyed("k2", "k", 1, task.Wait, 2), task.New("limited", nil, task.ID("l2")))
				a.claim(0, lanes)
				lose(t, w, a)
				a.claim(2, lanes)
				if n := rdb.HLen(t.Context(), w.keys.Active).Val(); n != 2 {
					t.Errorf("%d counts, want 2", n)
				}
			})
		})
	}
}
