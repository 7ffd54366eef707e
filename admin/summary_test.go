package admin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// The summary counts what the history has of the time.
func TestSummary_saysHowSchedulesDid(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		rdb, ns := testredis.Real(t), testredis.Namespace(t)
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Release: "v1"})
		must(t, err)
		a, ctx := of(d), t.Context()
		for _, name := range []string{"well", "mended", "bad", "paused"} {
			_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(time.Second), Task: "echo"})
			must(t, err)
		}
		_, err = a.Schedules.Pause(ctx, "paused", "")
		must(t, err)
		now, err := a.Activity.Now(ctx)
		must(t, err)
		history := "onbeat:{" + ns + "}:history"
		note := func(ago time.Duration, lines string) {
			must(t, rdb.XAdd(ctx, &redis.XAddArgs{Stream: history, ID: fmt.Sprintf("%d-*", now.Add(-ago).UnixMilli()), Values: []any{"slots", lines}}).Err())
		}
		run := func(name, word string, lag int64) string {
			slot := now.Add(-10 * time.Second).UnixMilli()
			return fmt.Sprintf("%s@%d %s 1 %d\n", name, slot, word, slot+lag)
		}
		note(20*time.Minute, run("well", "dead", 5000))
		again := func(ago, took time.Duration, word string) string {
			slot := now.Add(-ago)
			return fmt.Sprintf("well@%d %s 1 %d\n", slot.UnixMilli(), word, slot.Add(took).UnixMilli())
		}
		note(4*time.Minute, again(4*time.Minute, 20*time.Millisecond, "dead"))
		note(50*time.Second, run("mended", "failed", 10)+run("mended", "failed", 20)+run("mended", "failed", 30))
		note(40*time.Second, run("mended", "done", 40)+run("bad", "lost", 50)+run("bad", "failed", 60)+run("bad", "dead", 70))
		note(35*time.Second, again(4*time.Minute, 200*time.Second, "done")+again(time.Hour, 3565*time.Second, "done")) // retried by hand
		note(30*time.Second, "well@1000..9000 missed 5 outage\nwell@10000 skipped overlap\n"+run("well", "done", 100))
		got, err := a.Activity.Summary(ctx, 0)
		must(t, err)
		roundTrip(t, got)
		if got.Active != 3 || got.Paused != 1 || got.Done != 4 || got.Failed != 4 || got.Dead != 2 || got.Lost != 1 || got.Missed != 5 || got.Skipped != 1 {
			t.Errorf("%+v", got)
		}
		if l := got.Lag; l == nil || l.Slots != 4 || l.P50MS != 20 || l.P99MS != 100 || l.MaxMS != 100 {
			t.Errorf("lag %+v", got.Lag)
		}
		if len(got.Ahead) != 12 || got.Ahead[0] != 15 {
			t.Errorf("ahead %v", got.Ahead)
		}
		if older, err := a.Activity.Summary(ctx, time.Hour); err != nil || older.Dead != 3 {
			t.Errorf("of an hour: %+v, %v", older, err)
		}
	})
}
