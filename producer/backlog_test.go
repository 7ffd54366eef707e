package producer

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The slots of a type that no instance handles do not fill Redis: when too many wait, every leader skips and notes new ones.
// When the first is taken, the schedule goes on, on its grid.
func TestBacklog_isBounded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.apply("often", schedule.Every(time.Millisecond))
		w.apply("else", schedule.Every(50*time.Millisecond))
		tn := w.lead("a", "", nil)
		tn.cfg.Backlog = 100
		ctx := t.Context()
		must(t, tn.insist(ctx, tn.takeStock))
		skipped := func() (n int64) {
			for _, note := range w.notes("often") {
				if note.Word == "skipped" && note.Why == "backlog" {
					n += note.Count
				}
			}
			return n
		}
		beat := func() { must(t, tn.insist(ctx, tn.push)) }
		testredis.Eventually(t, patience, func() bool { beat(); return skipped() > 1000 }, "slots are skipped")
		n, _ := w.account("often")
		if n > 2000 { // the backlog, and the slots of one push ahead
			t.Errorf("%d wait", n)
		}
		for i := range 5 { // a rollout of a few: none begins to count anew
			id := fmt.Sprint("b", i)
			tn = w.lead(id, id, nil) // of a newer release: it leads at once
			tn.cfg.Backlog = 100
			must(t, tn.insist(ctx, tn.takeStock))
			was := skipped()
			testredis.Eventually(t, patience, func() bool { beat(); return skipped() > was+100 }, "slots are skipped")
			if n, _ := w.account("often"); n > 2000 {
				t.Errorf("%d wait after %d changes of the leader", n, i+1)
			}
		}
		if events, err := w.q.Events(ctx, time.Time{}, 1000); err != nil || count(events, "backlog") != 1 {
			t.Errorf("events %v, %v: want one of the backlog", events, err)
		}
		if len(w.pushed("else")) == 0 {
			t.Error("another schedule is held up")
		}
		lane := queue.Lane{Queue: task.DefaultQueue, Type: "job"}
		must(t, rdb.Del(ctx, w.q.Keys().Due(lane)).Err()) // as if instances took all of them
		before := n
		testredis.Eventually(t, patience, func() bool { beat(); n, _ := w.account("often"); return n > before }, "it goes on")
	})
}

func count(events []queue.Event, kind string) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// The slot that is looked at lies at least so many before, also of a rule whose slots come in bursts.
func TestBacklog_probesFarEnoughBack(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]schedule.Rule{
		"every": schedule.Every(time.Millisecond), "burst": schedule.Cron("* * 9 * * *", time.UTC), "minutely": schedule.Cron("* * * * *", time.UTC),
		"yearly": schedule.Cron("0 0 1 1 *", time.UTC),
	} {
		grid, err := r.Grid(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		must(t, err)
		e := &entry{s: &Schedule{Name: name, Rule: r, Task: "job"}, grid: grid, last: queue.Last{Runs: 60_000}}
		first := grid.Next(time.Date(2026, 11, 22, 8, 59, 59, 0, time.UTC))
		p := e.probe(first, 50_000)
		if name == "yearly" {
			if p != (queue.Probe{}) {
				t.Errorf("%s: %v", name, p)
			}
			continue
		}
		_, slot, ok := task.ParseSlotID(p.ID)
		if n := grid.Count(slot, first); !ok || n < 50_000 || n > 101_000 {
			t.Errorf("%s: %v lies %d before %v", name, p, n, first)
		}
	}
}
