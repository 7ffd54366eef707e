package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Runs, failures and tasks that wait are in the trends within seconds, and another release that leads is a mark.
func TestTrends_areWhatHappened(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		rdb, ns := testredis.Client(t), testredis.Namespace(t)
		first, stop := trending(t, rdb, ns, "v1")
		a := of(first)
		has := func(what string, is func(*admin.Trends, *admin.TrendPoint) bool) {
			t.Helper()
			testredis.Eventually(t, time.Minute, func() bool {
				got, err := a.Activity.Trends(t.Context(), 0)
				if err != nil || got.Step != "1m" || len(got.Points) < 59 || len(got.Points) > 61 {
					t.Fatalf("%d points of %s, %v", len(got.Points), got.Step, err)
				}
				sum := admin.TrendPoint{}
				for i := range got.Points {
					p := &got.Points[i]
					sum.Done, sum.Dead = sum.Done+p.Done, sum.Dead+p.Dead
					if p.Waiting != nil {
						sum.Waiting = p.Waiting
					}
					if p.MaxLagMS != nil {
						sum.MaxLagMS = p.MaxLagMS
					}
				}
				return is(&got, &sum)
			}, "%s", what)
		}
		has("runs", func(_ *admin.Trends, sum *admin.TrendPoint) bool {
			return sum.Done >= 5 && sum.Dead >= 5 && sum.Waiting != nil && sum.MaxLagMS != nil && *sum.MaxLagMS < 60_000
		})
		_, next := trending(t, rdb, ns, "v2")
		stop()
		has("another release", func(got *admin.Trends, _ *admin.TrendPoint) bool {
			return len(got.Releases) == 1 && got.Releases[0].Release == "v2" && !got.Releases[0].At.Before(got.From)
		})
		next()
		for since, step := range map[time.Duration]string{time.Hour: "1m", 24 * time.Hour: "10m", 7 * 24 * time.Hour: "1h", 99 * 24 * time.Hour: "1h"} {
			if got, err := a.Activity.Trends(t.Context(), since); err != nil || got.Step != step || len(got.Points) > 170 {
				t.Errorf("%v: %d points of %s, %v", since, len(got.Points), got.Step, err)
			}
		}
	})
}

// trending runs a release with a schedule that goes well and one that fails.
func trending(t *testing.T, rdb redis.UniversalClient, ns, release string) (d *onbeat.Dispatcher, stop func()) {
	t.Helper()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Release: release})
	must(t, err)
	must(t, d.Handle("well", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	must(t, d.Handle("bad", handlers.Func(func(context.Context, *task.Task) error { return task.ErrInvalid })))
	must(t, d.Schedule("well", schedule.Every(100*time.Millisecond), "well", nil))
	must(t, d.Schedule("bad", schedule.Every(100*time.Millisecond), "bad", nil, task.MaxAttempts(1)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	testredis.Eventually(t, time.Minute, func() bool {
		list, err := d.Admin().Instances.List(t.Context())
		return err == nil && list.Leader() != nil && list.Leader().Release == release
	}, "it leads")
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return d, stop
}
