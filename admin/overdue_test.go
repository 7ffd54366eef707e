package admin_test

import (
	"context"
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

// A slot that was cancelled before it came is settled: every surface says so. It does not hide the next one, which nobody pushes.
func TestOverdue_notASlotThatWasCancelled(t *testing.T) {
	t.Parallel()
	minute := time.Date(2031, 5, 4, 8, 0, 0, 0, time.UTC)
	mini := testredis.Mini(t)
	mini.SetTime(minute.Add(-90 * time.Second)) // its clock stands still until it is set again
	d := named(t, mini.Client, "cancelled")
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	a := d.Admin()
	_, err := a.Schedules.Apply(t.Context(), producer.Schedule{Name: "h", Rule: schedule.Cron("* * * * *", nil), Task: "job"})
	must(t, err)
	_, err = a.Schedules.Pause(t.Context(), "h", "so that the slot before is none of this test")
	must(t, err)
	mini.SetTime(minute.Add(-5 * time.Second))
	_, err = a.Schedules.Resume(t.Context(), "h")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	slot := task.SlotID("h", minute)
	await(t, a, slot, admin.TaskPlanned)
	_, err = a.Tasks.Cancel(t.Context(), slot)
	must(t, err)
	stop()
	must(t, <-ended)

	for _, c := range []struct {
		after  time.Duration
		health admin.Health
		since  time.Time
	}{{13 * time.Second, admin.Well, time.Time{}}, {75 * time.Second, admin.Overdue, minute.Add(time.Minute)}} {
		mini.SetTime(minute.Add(c.after))
		one, err := a.Schedules.Get(t.Context(), "h")
		must(t, err)
		list, err := a.Schedules.List(t.Context())
		must(t, err)
		for _, got := range []admin.Condition{one.Condition, list.Items[0].Condition} {
			if got.Health != c.health || !got.Since.Equal(c.since) {
				t.Errorf("%+v, want %s since %v", got, c.health, c.since)
			}
		}
		status, err := a.Activity.Status(t.Context())
		must(t, err)
		report, err := a.Activity.Audit(t.Context(), audit.Options{Since: 2 * time.Minute})
		must(t, err)
		inStatus, inAudit := false, false
		for _, x := range status.Trouble {
			inStatus = inStatus || x.Kind == string(admin.Overdue)
		}
		for _, x := range report.Schedules[0].Trouble {
			inAudit = inAudit || x.Kind == audit.TroubleOverdue
		}
		if bad := c.health == admin.Overdue; inStatus != bad || inAudit != bad || report.Schedules[0].Counts[audit.Cancelled] != 1 {
			t.Errorf("%v after it: overdue in the status: %v, in the audit: %v; %+v", c.after, inStatus, inAudit, report.Schedules[0])
		}
	}
}
