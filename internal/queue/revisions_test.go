package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// said is what a schedule's revisions say, the newest first: "what who definition".
func (w *world) said(name string) (list []string) {
	w.Helper()
	noted, err := w.q.Revisions(w.Context(), name)
	w.must(err)
	for i, r := range noted {
		if i > 0 && r.Number >= noted[i-1].Number {
			w.Errorf("revision %d after %d", r.Number, noted[i-1].Number)
		}
		list = append(list, r.What+" "+r.Who+" "+r.Definition)
	}
	return list
}

// by applies a change in somebody's name.
func (w *world) by(actor string, c queue.Change) {
	w.Helper()
	s, err := w.q.Schedule(w.Context(), c.Name)
	w.must(err)
	c.Expect = s.Last
	_, moved, err := w.q.Change(queue.By(w.Context(), actor), 0, []queue.Change{c})
	w.must(err)
	same(w, "moved", len(moved), 0)
}

func TestChange_notesRevisions(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.by("ann\nb", queue.Change{Name: "s", Definition: "1", Event: "schedule made"})
		w.by("bob", queue.Change{Name: "s", Definition: "2\n", Event: "schedule changed"})
		w.by("bob", queue.Change{Name: "s", Pause: yes(true), Event: "schedule paused"})
		w.by("", queue.Change{Name: "s", Retire: true, By: "v2", Event: "schedule retired"})
		w.by("", queue.Change{Name: "s", Definition: "2\n", Event: "schedule restored"})
		w.by("ann", queue.Change{Name: "s", Delete: true, Event: "schedule deleted", Changes: "[]"})
		equal(t, "revisions", w.said("s"), []string{"deleted ann ", "restored  2 ", "retired v2 ", "changed bob 2 ", "made ann b 1"})
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		w.must(err)
		last := events[len(events)-1].Fields
		same(t, "event", fmt.Sprint(last), fmt.Sprint(map[string]string{"schedule": "s", "by": "ann", "changes": "[]"}))
		same(t, "event of a retirement", fmt.Sprint(events[3].Fields), fmt.Sprint(map[string]string{"schedule": "s", "release": "v2"}))
	})
}

func TestChange_boundsRevisions(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for i := range 60 {
			w.by("", queue.Change{Name: "many", Definition: fmt.Sprint(i), Event: "schedule changed"})
		}
		said := w.said("many")
		same(t, "revisions", len(said), 50)
		same(t, "the oldest", said[49], "changed  10")
		for i := range 5 {
			w.by("", queue.Change{Name: "large", Definition: strings.Repeat(fmt.Sprint(i), 100_000), Event: "schedule changed"})
		}
		same(t, "large revisions", len(w.said("large")), 2)
		w.by("", queue.Change{Name: "large", Definition: strings.Repeat("x", 300_000), Event: "schedule changed"})
		said = w.said("large")
		same(t, "one that is too large", said[0], "changed  ")
		text := rdb.HGet(t.Context(), w.keys.Revisions, "large").Val()
		same(t, "bytes are bounded", len(text) <= 256<<10, true)
	})
}

// A damaged revision is left out, and keeps no change from being made.
func TestRevisions_leaveOutWhatIsDamaged(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for _, rubbish := range []string{"", "\n", "x", "1 2", "1 2 3 4 5", "\t", "x 2 3 4 5\t6", "1 x 3 4 5\t6", "-1 2 3 4 5\t6", "\x00\t\n\t\t\n"} {
			w.must(rdb.HSet(t.Context(), w.keys.Revisions, rubbish+"s", rubbish).Err())
			equal(t, "revisions", w.said(rubbish+"s"), nil)
			w.by("", queue.Change{Name: rubbish + "s", Definition: "1", Event: "schedule made"})
			equal(t, "revisions", w.said(rubbish+"s"), []string{"made  1"})
		}
	})
}

// The record of a schedule leaves 30 days after it is gone, and its revisions with it. No others do.
func TestTidy_forgetsWhatIsLongGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx, rdb := t.Context(), w.rdb
	for _, name := range []string{"stays", "recent", "gone", "again", "half"} {
		w.by("", queue.Change{Name: name, Definition: strings.Repeat("x", 100), Event: "schedule made"})
	}
	w.must(rdb.HDel(ctx, w.keys.Last, "half").Err())
	for _, name := range []string{"recent", "gone", "again", "half"} {
		w.by("", queue.Change{Name: name, Delete: true, Event: "schedule deleted"})
	}
	for _, name := range []string{"recent", "gone"} {
		w.must(rdb.HSet(ctx, w.keys.Pauses, name, "1 ann\nwhy").Err())
	}
	long := float64(w.now().Add(-queue.RetiredKept - time.Second).UnixMilli())
	for _, name := range []string{"gone", "again", "half"} {
		w.must(rdb.ZAdd(ctx, w.keys.Retirements, redis.Z{Score: long, Member: name}).Err())
	}
	w.by("", queue.Change{Name: "again", Definition: "2", Event: "schedule made"})
	_, err := w.q.Tidy(ctx, 5*time.Second)
	w.must(err)
	for name, want := range map[string]int{"stays": 1, "recent": 2, "gone": 0, "again": 3, "half": 0} {
		same(t, name, len(w.said(name)), want)
	}
	pauses, err := w.q.SchedulesNamed(ctx, []string{"recent", "gone"})
	w.must(err)
	if pauses[0].Pause != "1 ann\nwhy" || pauses[1].Pause != "" {
		t.Errorf("%+v", pauses)
	}
	list, err := w.q.AllGone(ctx, true)
	w.must(err)
	if len(list) != 1 || list[0].Name != "recent" {
		t.Errorf("%+v", list)
	}
}
