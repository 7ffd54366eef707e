package producer

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The retries of a slot are spread over half of the gap to the next slot, unless the schedule says otherwise.
func TestSlot_isRetriedWithinHalfOfTheGap(t *testing.T) {
	t.Parallel()
	const never = 0
	for _, c := range []struct {
		gap      time.Duration
		by       Schedule
		attempts int
		base     time.Duration // 0: the default of a task
	}{
		{gap: 24 * time.Hour, attempts: 12}, // 1 s + 2 s + … + 1024 s: as long as an hour allows
		{gap: 2 * time.Hour, attempts: 12},
		{gap: time.Hour, attempts: 11},
		{gap: time.Minute, attempts: 5},
		{gap: 6 * time.Second, attempts: 3},
		{gap: 3 * time.Second, attempts: 3, base: 500 * time.Millisecond},
		{gap: time.Second, attempts: 3, base: 166 * time.Millisecond},
		{gap: time.Millisecond, attempts: 3, base: time.Millisecond},
		{gap: never, attempts: 12},
		{gap: time.Second, by: Schedule{MaxAttempts: 7}, attempts: 7, base: 166 * time.Millisecond},
		{gap: time.Hour, by: Schedule{MaxAttempts: 1}, attempts: 1},
		{gap: time.Second, by: Schedule{Backoff: task.Backoff{Base: time.Minute}}, attempts: 3, base: time.Minute},
		{gap: time.Hour, by: Schedule{Backoff: task.Backoff{Base: time.Minute, Cap: time.Minute}}, attempts: 31, base: time.Minute},
		{gap: time.Hour, by: Schedule{Backoff: task.Backoff{Base: time.Millisecond, Cap: time.Millisecond}}, attempts: 100, base: time.Millisecond},
	} {
		slot, next := time.UnixMilli(1_000_000), time.Time{}
		if c.gap != never {
			next = slot.Add(c.gap)
		}
		c.by.Name, c.by.Task, c.by.Rule = "s", "job", schedule.Rule{Every: time.Hour}
		got := c.by.slotTask(slot, next)
		if got.MaxAttempts != c.attempts || got.Backoff.Base != c.base || got.Backoff.Cap != c.by.Backoff.Cap {
			t.Errorf("a gap of %v, %+v: %d attempts, %+v, want %d and %v", c.gap, c.by.Backoff, got.MaxAttempts, got.Backoff, c.attempts, c.base)
		}
	}
}

// The definition of a schedule says when its tasks may not overlap, and where they wait, as its tasks do.
func TestSchedule_saysOfItsTasksWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, o := range []schedule.Overlap{"", schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace} {
		s := Schedule{Name: "s", Task: "job", Queue: "q", Priority: task.High, Rule: schedule.Rule{Every: time.Hour, Overlap: o}}
		if s.exclusive() != (s.slotTask(time.UnixMilli(0), time.Time{}).Key != "") {
			t.Errorf("%q: exclusive %v", o, s.exclusive())
		}
		if want := queue.LaneOf(s.slotTask(time.UnixMilli(0), time.Time{})); s.lane() != want {
			t.Errorf("%q: lane %v, want %v", o, s.lane(), want)
		}
	}
}
