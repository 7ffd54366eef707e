package producer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A failover may lose the last writes while the leader still leads: it pushes the lost slots again, and finds a
// schedule made since though its version was given before.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := worldIn(t, testredis.Private(t).Client(), "lost")
	n := w.start("v1", nil)
	w.leads(n)
	w.apply("s", schedule.Every(time.Hour))
	testredis.Eventually(t, patience, func() bool { return len(w.pushed("s")) == 1 }, "the first slot is pushed")
	st, err := w.q.Schedule(ctx, "s")
	must(t, err)
	last, err := queue.ParseLast(st.Last)
	must(t, err)
	id := task.SlotID("s", last.Slot)

	k := w.q.Keys()
	testredis.Eventually(t, patience, func() bool { return w.rdb.PubSubNumSub(ctx, k.Wake).Val()[k.Wake] == 1 }, "it listens")
	before := queue.Last{Rev: last.Rev, Anchor: last.Anchor}
	_, err = w.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, k.Last, "s", before.String())
		p.HDel(ctx, k.Tasks, id)
		p.ZRem(ctx, k.Due(queue.Lane{Queue: task.DefaultQueue, Type: "job"}), id)
		p.HIncrBy(ctx, k.Meta, "schedules", -1)
		return nil
	})
	must(t, err)
	must(t, w.rdb.Do(ctx, "client", "kill", "type", "pubsub").Err())
	w.apply("new", schedule.Every(time.Hour))
	testredis.Eventually(t, patience, func() bool { return len(w.pushed("s")) == 1 }, "the lost slot is pushed again")
	testredis.Eventually(t, patience, func() bool { return len(w.pushed("new")) == 1 }, "the new schedule is found")
}

// Tasks that are kept past their time leave while slots wait for room, because they may be what fills Redis.
func TestFull_tidiesUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := worldIn(t, testredis.Private(t, "--maxmemory-policy", "noeviction").Client(), "tidy")
	w.apply("s", schedule.Every(50*time.Millisecond))
	k := w.q.Keys()
	must(t, w.rdb.HSet(ctx, k.Tasks, "old", "record").Err())
	must(t, w.rdb.ZAdd(ctx, k.Done, redis.Z{Score: 1, Member: "old"}).Err())
	must(t, w.rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	n := w.start("", nil)
	w.leads(n)
	testredis.Eventually(t, patience, func() bool { return w.rdb.ZCard(ctx, k.Done).Val() == 0 }, "what was kept leaves")
	must(t, w.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
}

// A change worked out by a clock that is ahead settles no slot that is to come.
func TestChange_byAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(100*time.Millisecond))
		st, err := w.q.Schedule(ctx, "s")
		must(t, err)
		c, err := remove(st, history.Deleted, w.now())
		must(t, err)
		c.Delete, c.Settled = false, w.now().Add(time.Minute)
		now, moved, err := w.q.Change(ctx, 0, []queue.Change{*c})
		must(t, err)
		if st, err = w.q.Schedule(ctx, "s"); err != nil || len(moved) > 0 {
			t.Fatal(moved, err)
		}
		if last, err := queue.ParseLast(st.Last); err != nil || last.Slot.After(now) {
			t.Errorf("settled up to %v, now %v, %v", last.Slot, now, err)
		}
	})
}

// Backfilled slots are all due at once: the schedule's overlap policy does not skip all but one, nor those on time.
func TestBackfill_isNotSkippedForOverlap(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for _, o := range []schedule.Overlap{schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace} {
			name := string(o)
			w.apply(name, schedule.Rule{Every: time.Minute, Overlap: o})
			n, err := w.backfill(t.Context(), name, w.now().Add(-10*time.Minute), w.now(), nil)
			if err != nil || n < 10 {
				t.Fatalf("%d added, %v", n, err)
			}
			for id, rec := range rdb.HGetAll(t.Context(), w.q.Keys().Tasks).Val() {
				tk := task.Task{ID: id}
				must(t, task.Decode(rec, &tk))
				if strings.HasPrefix(id, name) && (tk.Key == "" || tk.Overlap != task.Behind) {
					t.Fatalf("%s: key %q, overlap %q", id, tk.Key, tk.Overlap)
				}
			}
		}
	})
}

// A slot may be a month ahead, and two clocks drift apart: the leader does not trust an old reading.
func TestUpkeep_readsTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	tn := w.lead("one", "", nil)
	must(t, tn.takeStock(t.Context()))
	tn.clock.Set(time.Now(), time.Now(), w.now().Add(-time.Hour))
	tn.upkeep(t.Context())
	if off := tn.clock.Now().Sub(w.now()).Abs(); off > 10*time.Second {
		t.Errorf("off by %v", off)
	}
}

// A schedule that comes back after the clock of Redis was set back repeats no slot that has run.
func TestRestore_afterTheClockWasSetBackRepeatsNoSlot(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx, w := t.Context(), newWorld(t, rdb)
		w.apply("s", schedule.Every(10*time.Minute))
		last := w.lastOf("s")
		last.Slot = last.Anchor.Add(time.Hour)
		must(t, rdb.HSet(ctx, w.q.Keys().Last, "s", last.String()).Err())
		must(t, rdb.HSet(ctx, w.q.Keys().Meta, "beat", last.Slot.Add(5*time.Minute).UnixMilli()).Err()) // written before the clock was set back
		must(t, w.Delete(ctx, "s"))
		must(t, w.Restore(ctx, "s"))
		if got := w.lastOf("s"); got.Slot.Before(last.Slot) {
			t.Errorf("settled up to %v, and ran up to %v", got.Slot, last.Slot)
		}
	})
}
