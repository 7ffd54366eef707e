package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// lately is a moment so many milliseconds after one at which tasks of today could be due.
func lately(ms int64) int64 { return 1_700_000_000_000 + ms }

func slotIn(n int, policy task.Overlap) *task.Task {
	return keyed(fmt.Sprint("s@", n), "s", 1, policy, lately(int64(n)))
}

// Tasks that are behind wait behind all tasks on time, and never hold those up, with any policy.
func TestCycle_whatIsBehindNeitherDropsNorIsDropped(t *testing.T) {
	t.Parallel()
	for _, policy := range []task.Overlap{task.Skip, task.QueueUp, task.Replace} {
		t.Run(string(rune(policy)), func(t *testing.T) {
			t.Parallel()
			eachWorld(t, func(t *testing.T, w *world) {
				a := w.join("a")
				w.add(slotIn(1, task.Behind), slotIn(2, task.Behind), slotIn(3, task.Behind))
				r := a.cycle(10, lanesOf("job"))
				equal(t, "first", ids(r.Claimed), []string{"s@1"})
				same(t, "on time and behind", fmt.Sprint(w.rdb.HMGet(t.Context(), w.keys.Active, "k:s", "b:s").Val()), "[1 1]")

				w.add(slotIn(9, policy))
				same(t, "claimed while one is behind runs", len(a.cycle(10, lanesOf("job")).Claimed), 0)
				same(t, "asked to stop", len(a.beat().Cancel), 0)
				r = a.cycle(10, lanesOf("job"), finished(r.Claimed[0]))
				equal(t, "on time goes first", ids(r.Claimed), []string{"s@9"})
				for _, want := range []string{"s@2", "s@3"} {
					r = a.cycle(10, lanesOf("job"), finished(r.Claimed[0]))
					equal(t, "then", ids(r.Claimed), []string{want})
				}
				a.cycle(10, lanesOf("job"), finished(r.Claimed[0]))
				same(t, "notes", len(w.notes()), 0)
				same(t, "active", w.count(w.keys.Active), 0)
			})
		})
	}
}

// Slots on time go by their policy among themselves, whatever slots are behind.
func TestCycle_whatIsOnTimeGoesByItsPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[task.Overlap]struct{ skipped, next string }{
		task.Skip: {"s@6", "s@5"}, task.QueueUp: {"s@6", "s@5"}, task.Replace: {"s@5", "s@6"},
	} {
		t.Run(string(rune(policy)), func(t *testing.T) {
			t.Parallel()
			eachWorld(t, func(t *testing.T, w *world) {
				a := w.join("a")
				w.add(slotIn(1, task.Behind), slotIn(2, task.Behind))
				one := a.claim(1, lanesOf("job"))[0]
				a.cycle(10, lanesOf("job"))
				w.add(slotIn(5, policy), slotIn(6, policy))
				a.cycle(10, lanesOf("job"))
				equal(t, "notes", w.notes(), []string{want.skipped + " skipped overlap"})
				same(t, "asked to stop", len(a.beat().Cancel), 0)
				r := a.cycle(10, lanesOf("job"), finished(one))
				equal(t, "next", ids(r.Claimed), []string{want.next})
				w.add(slotIn(7, policy))
				a.cycle(10, lanesOf("job"))
				same(t, "asked to stop", len(a.beat().Cancel), map[bool]int{true: 1, false: 0}[policy == task.Replace])
				equal(t, "skipped while one on time runs", w.notes()[1:], map[task.Overlap][]string{task.Skip: {"s@7 skipped overlap"}}[policy])
			})
		})
	}
}

// A slot that was pushed ahead and missed is behind from then on, unless it was claimed or waits for another attempt.
func TestAdvance_marksWhatIsBehind(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		for n := range 4 {
			w.add(slotIn(n, task.Skip))
		}
		a.claim(1, lanesOf("job")) // 0
		w.must(w.rdb.ZAdd(t.Context(), w.keys.Due(lane("job")), redis.Z{Score: float64(lately(1) + 1), Member: "s@1"}).Err())
		last := w.schedule("s")
		var drops []queue.Drop
		for n := range 3 {
			drops = append(drops, queue.Drop{
				Place: queue.Place{Lane: lane("job"), ID: fmt.Sprint("s@", n)}, Due: time.UnixMilli(lately(int64(n))), Behind: true,
			})
		}
		_, dropped, _, err := w.q.Advance(t.Context(), a.term(), []queue.Step{{Name: "s", Expect: last.String(), Becomes: last.String(), Drop: drops}})
		w.must(err)
		same(t, "dropped", dropped, 0)
		for n, want := range []task.Overlap{task.Skip, task.Skip, task.Behind, task.Skip} {
			f, err := w.q.Task(t.Context(), fmt.Sprint("s@", n))
			w.must(err)
			same(t, f.Task.ID, f.Task.Overlap, want)
		}
	})
}
