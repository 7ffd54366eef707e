package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A pause keeps who paused a schedule, since when and why, also while the schedule is changed, or deleted and restored.
func TestPause_keepsItsReason(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		a := of(dispatcher(t, testredis.Client(t)))
		ctx := queue.By(t.Context(), "ann")
		s := producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "bad"}
		_, err := a.Schedules.Apply(ctx, s)
		must(t, err)
		since := time.Time{}
		shown := func(reason string) {
			t.Helper()
			one, err := a.Schedules.Get(ctx, "s")
			must(t, err)
			list, err := a.Schedules.List(ctx)
			must(t, err)
			for _, got := range []admin.Schedule{one.Schedule, list.Items[0]} {
				p := got.Pause
				if !got.Paused || p == nil || p.Reason != reason || got.Health != admin.Paused || !got.Since.Equal(p.At) || !strings.HasSuffix(got.Why, reason) {
					t.Fatalf("%+v, want the reason %q", got.ScheduleState, reason)
				}
				if since.IsZero() {
					since = p.At
				}
				if !p.At.Equal(since) {
					t.Errorf("paused since %v, not %v", p.At, since)
				}
			}
		}
		change := func(reason string, want bool) {
			t.Helper()
			if did, err := a.Schedules.Pause(ctx, "s", reason); err != nil || did != want {
				t.Fatalf("pause for %q: %v, %v", reason, did, err)
			}
		}
		for _, bad := range []string{"two\nlines", strings.Repeat("ä", queue.LongestReason+1)} {
			var refused *task.FieldError
			if _, err := a.Schedules.Pause(ctx, "s", bad); !errors.As(err, &refused) || refused.Field != "reason" {
				t.Errorf("%v", err)
			}
			if _, err := a.Instances.Pause(ctx, time.Second, bad); !errors.As(err, &refused) || refused.Field != "reason" {
				t.Errorf("%v", err)
			}
		}
		change("the database moves", true)
		shown("the database moves")
		change("", false)
		change("the database moves", false)
		shown("the database moves")
		change(strings.Repeat("ä", queue.LongestReason), true)
		change("it moves on", true)
		shown("it moves on")
		s.Every = 2 * time.Hour
		_, err = a.Schedules.Apply(ctx, s)
		must(t, err)
		shown("it moves on")
		_, err = a.Schedules.Delete(ctx, "s")
		must(t, err)
		_, err = a.Schedules.Restore(ctx, "s")
		must(t, err)
		shown("it moves on")

		_, err = a.Schedules.Resume(ctx, "s")
		must(t, err)
		if got, err := a.Schedules.Get(ctx, "s"); err != nil || got.Pause != nil || got.Why != "" {
			t.Errorf("%+v, %v", got.ScheduleState, err)
		}
		change("", true)
		since = time.Time{}
		shown("")

		_, err = a.Schedules.Delete(ctx, "s")
		must(t, err)
		_, err = a.Schedules.Apply(ctx, s) // another one of that name
		must(t, err)
		change("", true)
		since = time.Time{}
		shown("")
	})
}
