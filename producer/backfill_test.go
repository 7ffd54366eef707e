package producer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// tenMinutes is a backfill of a schedule that comes every minute, and how many slots that has.
func (w *world) tenMinutes() (b Backfilling, slots int) {
	w.Helper()
	w.apply("s", schedule.Every(time.Minute))
	to := w.now()
	b = Backfilling{From: to.Add(-10 * time.Minute), To: to}
	dry := b
	dry.DryRun = true
	got, err := w.Backfill(w.Context(), "s", dry)
	must(w, err)
	if got.Slots < 10 {
		w.Fatalf("%+v", got)
	}
	return b, got.Slots
}

func (w *world) wantBackfilled(what string, b Backfilling, want Backfilled) {
	w.Helper()
	got, err := w.Backfill(w.Context(), "s", b)
	if got.Why = nil; got != want || err != nil {
		w.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
	}
}

// fillLanes leaves no room for a new lane.
func (w *world) fillLanes() {
	w.Helper()
	lanes := map[string]any{}
	for i := range queue.MostLanes {
		lanes[fmt.Sprint("full", i, "|normal|x")] = 1
	}
	must(w, w.rdb.HSet(w.Context(), w.q.Keys().Lanes, lanes).Err())
}

// backfillLane is the lane of backfilled slots.
var backfillLane = queue.Lane{Queue: task.DefaultQueue, Type: "job", Priority: task.Low}

// A backfill with again that finds all slots waiting gives none of them away: when they have run, one without again adds none.
func TestBackfill_againWhileTheyWait(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		b, n := w.tenMinutes()
		w.wantBackfilled("first", b, Backfilled{Slots: n, Added: n})
		again := b
		again.Again = true
		w.wantBackfilled("again, while they wait", again, Backfilled{Slots: n})
		k := w.q.Keys()
		must(t, rdb.Del(t.Context(), k.Tasks, k.Due(backfillLane)).Err()) // they have run, and are not kept
		w.wantBackfilled("without again", b, Backfilled{Slots: n})
		w.wantBackfilled("again", again, Backfilled{Slots: n, Added: n})
	})
}

// A backfill with again removes no dead task for a new task that Redis refuses: the dead one stays as it is.
func TestBackfill_againKeepsTheDeadThatItCannotAdd(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx, k := t.Context(), w.q.Keys()
		b, n := w.tenMinutes()
		w.wantBackfilled("first", b, Backfilled{Slots: n, Added: n})
		for _, id := range rdb.HKeys(ctx, k.Tasks).Val() {
			must(t, rdb.ZAdd(ctx, k.Dead, redis.Z{Score: float64(w.now().UnixMilli()), Member: id}).Err())
		}
		must(t, rdb.Del(ctx, k.Due(backfillLane), k.Lanes).Err()) // the lane was empty for an hour
		w.fillLanes()
		b.Again = true
		w.wantBackfilled("with all lanes in use", b, Backfilled{Slots: n, Refused: n})
		if dead, records := rdb.ZCard(ctx, k.Dead).Val(), rdb.HLen(ctx, k.Tasks).Val(); dead != int64(n) || records != int64(n) {
			t.Errorf("%d dead tasks and %d records are left, of %d", dead, records, n)
		}
		must(t, rdb.Del(ctx, k.Lanes).Err())
		w.wantBackfilled("with lanes", b, Backfilled{Slots: n, Added: n})
		if dead := rdb.ZCard(ctx, k.Dead).Val(); dead != 0 {
			t.Errorf("%d that run again are dead besides", dead)
		}
	})
}

// Slots that Redis refuses are told, with the reason. They are not taken, and count as added by no backfill.
func TestBackfill_tellsOfWhatRedisRefuses(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		b, n := w.tenMinutes()
		w.fillLanes()
		got, err := w.Backfill(t.Context(), "s", b)
		var field *task.FieldError
		if got.Refused != n || got.Added != 0 || err != nil || !errors.As(got.Why, &field) || field.Field != "queue" {
			t.Errorf("%+v, %v", got, err)
		}
		must(t, rdb.Del(t.Context(), w.q.Keys().Lanes).Err())
		w.wantBackfilled("with lanes", b, Backfilled{Slots: n, Added: n})
	})
}
