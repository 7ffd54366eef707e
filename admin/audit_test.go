package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// An audit is not well, and says why, if the last run of a schedule was dead whatever came before, and if a schedule was paused all the
// time for no reason. A slot that runs is running, and nothing else.
func TestAudit_saysWhatIsNotWell(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Client(t))
		var breaks, hangs atomic.Bool
		release := make(chan struct{})
		err := d.Handle("turns", handlers.Func(func(ctx context.Context, _ *task.Task) error {
			if hangs.Load() {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			if breaks.Load() {
				return errors.New("it broke")
			}
			return nil
		}))
		must(t, err)
		a, ctx := of(d), t.Context()
		run(t, d)
		enqueue(t, a, "turns", "first", task.Keep(time.Minute))
		await(t, a, "first", admin.TaskDone) // an instance works, so that no slot is missed
		_, err = a.Schedules.Apply(ctx, producer.Schedule{Name: "s", Rule: schedule.Rule{Every: 100 * time.Millisecond, Overlap: schedule.OverlapAllow}, Task: "turns", MaxAttempts: 1})
		must(t, err)
		var r audit.Report
		judged := func(o audit.Options, what string, is func() bool) {
			t.Helper()
			testredis.Eventually(t, patience, func() error {
				got, err := a.Activity.Audit(ctx, o)
				if err != nil || len(got.Schedules) != 1 || got.OK() != got.Schedules[0].OK() {
					return fmt.Errorf("%+v, %w", got, err)
				}
				if r = got.Schedules[0]; !is() {
					return fmt.Errorf("%v, %+v, %v", r.Counts, r.Trouble, r.Breaks)
				}
				return nil
			}, "%s", what)
		}
		has := func(kind string) bool {
			return slices.ContainsFunc(r.Trouble, func(x audit.Trouble) bool { return x.Kind == kind && x.Text != "" && !x.Since.IsZero() })
		}
		ran := func() int64 { return r.Counts[audit.OnTime] + r.Counts[audit.Late] }
		all := audit.Options{}
		judged(all, "it runs well", func() bool { return ran() > 3 && r.OK() })
		breaks.Store(true)
		judged(all, "its last run is dead, and others went well", func() bool { return ran() > 3 && has(string(admin.Failing)) })
		breaks.Store(false)
		judged(all, "it recovers", func() bool { return r.Counts[audit.Failed] > 0 && r.OK() })

		hangs.Store(true)
		judged(all, "slots run", func() bool {
			return r.Counts[audit.Running] > 1 && len(r.Runs) > 1 && !r.Runs[0].Since.Before(r.Runs[0].Slot)
		})
		beat, err := a.Activity.Beat(ctx, admin.BeatQuery{From: r.Runs[0].Slot})
		must(t, err)
		if s := beat.Schedules[0].Slots[0]; s.Fate != audit.Running || !s.Began.Equal(r.Runs[0].Since) {
			t.Errorf("%+v, want %+v", s, r.Runs[0])
		}
		hangs.Store(false)
		close(release)
		judged(all, "it runs on", func() bool { return r.OK() && r.Counts[audit.Running] == 0 })

		_, err = a.Schedules.Pause(ctx, "s", "")
		must(t, err)
		lately := audit.Options{Since: 300 * time.Millisecond}
		judged(lately, "it is paused for no reason", func() bool { return has(audit.TroublePaused) && !r.OK() })
		judged(all, "it has run in the last hour", func() bool { return !has(audit.TroublePaused) })
		_, err = a.Schedules.Pause(ctx, "s", "the database moves")
		must(t, err)
		judged(lately, "it is paused for a reason", func() bool { return r.OK() && r.Counts[audit.Paused] == r.Slots && r.Slots > 0 })
	})
}
