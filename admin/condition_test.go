package admin

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

var noon = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

// every is a schedule of each minute, on the minute, whose last slot came 30 s ago.
func every(change func(*producer.Status)) *producer.Status {
	s := &producer.Status{
		Schedule: producer.Schedule{Name: "s", Task: "job", Rule: schedule.Every(time.Minute)},
		Anchor:   noon.Add(-time.Hour), Last: noon.Add(-30 * time.Second), Came: noon.Add(-30 * time.Second), Next: noon.Add(30 * time.Second), Pushed: noon,
		Revision: noon.Add(-time.Hour).UnixMilli(),
	}
	s.Anchor = s.Anchor.Add(30 * time.Second)
	if change != nil {
		change(s)
	}
	return s
}

func TestJudge(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	well := producer.Health{Success: ago(29 * time.Second), Ended: ago(29 * time.Second), Noted: ago(29 * time.Second), Outcome: history.Done, Took: time.Second}
	with := func(change func(*producer.Health)) producer.Health {
		h := well
		change(&h)
		return h
	}
	for name, c := range map[string]struct {
		status func(*producer.Status)
		health producer.Health
		runs   time.Duration // how long a run lasts; 0: none
		late   time.Duration // for how long a slot waits; 0: none does
		types  []string
		want   Health
		since  time.Time
		why    string // of a pause
	}{
		"well": {health: well, want: Well},
		"new": {status: func(s *producer.Status) {
			s.Anchor, s.Last, s.Next = noon.Add(time.Minute), time.Time{}, noon.Add(time.Minute)
		}, want: Well},
		"runs":    {health: with(func(h *producer.Health) { h.Noted = ago(80 * time.Second) }), runs: 20 * time.Second, want: Well},
		"retired": {status: func(s *producer.Status) { s.Retired = &producer.Retirement{At: ago(time.Hour), Release: "v2"} }, health: well, want: Retired, since: ago(time.Hour)},
		"paused":  {status: func(s *producer.Status) { s.Paused = true }, health: well, want: Paused, since: ago(time.Hour)},
		"paused, and changed since": {status: func(s *producer.Status) {
			s.Paused, s.Pause = true, &producer.Pause{At: ago(2 * time.Hour), Reason: "moves"}
		}, health: well, want: Paused, since: ago(2 * time.Hour), why: "moves"},
		"typo": {health: well, types: []string{"jbo"}, want: Unhandled, since: ago(29 * time.Second)},
		"ended": {
			status: func(s *producer.Status) { s.Next = time.Time{} },
			health: with(func(h *producer.Health) { h.Success, h.Noted = ago(time.Hour), ago(time.Hour) }), types: []string{"jbo"}, want: Ended,
		},
		"deleted, and paused before": {status: func(s *producer.Status) {
			s.Paused, s.Pause, s.Deleted = true, &producer.Pause{At: ago(2 * time.Hour), Reason: "moves"}, &producer.Deletion{At: ago(time.Hour)}
		}, health: well, want: Deleted, since: ago(time.Hour)},
		"deleted":      {status: func(s *producer.Status) { s.Deleted = &producer.Deletion{At: ago(time.Hour)} }, health: well, want: Deleted, since: ago(time.Hour)},
		"hung":         {health: well, runs: 2 * time.Minute, want: Hung, since: ago(2 * time.Minute)},
		"long":         {health: with(func(h *producer.Health) { h.Took = 2 * time.Minute }), runs: 3 * time.Minute, want: Well},
		"dead":         {health: with(func(h *producer.Health) { h.Outcome, h.Dead, h.Troubled = history.Dead, 1, ago(time.Minute) }), want: Failing, since: ago(time.Minute)},
		"a retry":      {health: with(func(h *producer.Health) { h.Failed = 2 }), want: Well},
		"retries":      {health: with(func(h *producer.Health) { h.Failed, h.Troubled = 3, ago(time.Minute) }), want: Failing, since: ago(time.Minute)},
		"overdue":      {health: with(func(h *producer.Health) { h.Noted = ago(89 * time.Second) }), want: Overdue, since: ago(30 * time.Second)},
		"falls behind": {health: well, runs: 3 * time.Second, late: 20 * time.Second, want: Overdue, since: ago(20 * time.Second)},
		"one waits, and a later one was cancelled ahead": {health: with(func(h *producer.Health) { h.Noted = noon.Add(5 * time.Second) }), late: 20 * time.Second, want: Overdue, since: ago(20 * time.Second)},
		"is late for once": {health: well, runs: 3 * time.Second, late: 5 * time.Second, want: Well},
		"waits behind a limit": {
			status: func(s *producer.Status) { s.Schedule.Task = "limited" }, health: well, late: 50 * time.Second, types: []string{"limited"}, want: Well,
		},
		"not pushed": {
			status: func(s *producer.Status) { s.Last, s.Pushed = noon.Add(-90*time.Second), noon.Add(-90*time.Second) },
			health: with(func(h *producer.Health) { h.Noted = ago(89 * time.Second) }), want: Overdue, since: ago(30 * time.Second),
		},
		"waits for the limit of its type": {
			status: func(s *producer.Status) { s.Schedule.Task = "limited" },
			health: with(func(h *producer.Health) { h.Noted = ago(89 * time.Second) }), types: []string{"limited"}, want: Well,
		},
		"waits for it in vain": {
			status: func(s *producer.Status) { s.Schedule.Task = "limited" },
			health: with(func(h *producer.Health) { h.Noted = ago(149 * time.Second) }), types: []string{"limited"}, want: Overdue, since: ago(90 * time.Second),
		},
		"in the morning": {
			status: func(s *producer.Status) {
				s.Schedule.Rule = schedule.Rule{Cron: "* 12-17 * * *"}
				s.Came = noon
			},
			health: with(func(h *producer.Health) {
				h.Success, h.Ended, h.Noted = ago(18*time.Hour), ago(18*time.Hour), ago(time.Second)
			}), want: Well,
		},
		"missed":       {health: with(func(h *producer.Health) { h.Missed, h.Troubled = 2, ago(20*time.Second) }), want: Missed, since: ago(20 * time.Second)},
		"skipped":      {health: with(func(h *producer.Health) { h.Skipped = 3 }), runs: 50 * time.Second, want: Skipped, since: ago(50 * time.Second)},
		"skipped once": {health: with(func(h *producer.Health) { h.Skipped = 3 }), want: Well},
		"stale": {
			health: with(func(h *producer.Health) { h.Success = ago(4 * time.Minute) }), want: Stale, since: ago(4 * time.Minute),
		},
	} {
		types := c.types
		if types == nil {
			types = []string{"job"}
		}
		x := &scene{
			now: noon, list: InstanceList{Items: []Instance{{ID: "a", State: "ready", Leader: true, LeaseLeftMS: 1, Types: types}}},
			running: map[string]queue.Held{}, healths: map[string]*producer.Health{"s": &c.health}, limited: map[string]bool{"limited": true},
		}
		if c.runs > 0 {
			x.running["s"] = queue.Held{ID: "s@1", At: noon.Add(-c.runs)}
		}
		if c.late > 0 {
			x.late = map[string]queue.Late{"s": {ID: task.SlotID("s", ago(c.late)), Due: ago(c.late)}}
		}
		if got := x.judge(every(c.status)); got.Health != c.want || !got.Since.Equal(c.since) || (got.Why == "") != (!c.want.Bad() && c.want != Retired && c.why == "") {
			t.Errorf("%s: %+v, want %s since %v", name, got, c.want, c.since)
		}
	}
}

// A leader is idle if no schedule goes on. Else the one that stands still is overdue, however fast it is.
func TestLooks_forALeaderThatPushesNothing(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"none goes on": false, "another goes on": true} {
		stuck := every(func(s *producer.Status) {
			s.Schedule.Rule = schedule.Every(time.Second)
			s.Last, s.Pushed = noon.Add(-20*time.Second), noon.Add(-20*time.Second) // as a read schedule says it: Last is never after Pushed
			s.Came, s.Next = noon, noon.Add(time.Second)
		})
		other := *every(func(s *producer.Status) { s.Schedule.Name, s.Pushed = "other", noon.Add(-21*time.Second) })
		if goesOn {
			other.Pushed = noon.Add(10 * time.Second)
		}
		heard := producer.Health{Noted: noon.Add(-20 * time.Second), Success: noon.Add(-20 * time.Second), Outcome: history.Done}
		v := &view{scene: &scene{
			now: noon, list: InstanceList{Items: []Instance{{ID: "a", State: "ready", Leader: true, LeaseLeftMS: 1, Types: []string{"job"}}}},
			running: map[string]queue.Held{}, healths: map[string]*producer.Health{"s": &heard, "other": &heard},
		}}
		v.Leader = "a"
		v.lookAtSchedules([]producer.Status{*stuck, other})
		kinds := map[string]string{}
		for _, x := range v.Trouble {
			kinds[x.Kind] = x.Name
		}
		if (kinds[LeaderIdle] == "a") == goesOn || kinds[string(Overdue)] != "s" {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}
