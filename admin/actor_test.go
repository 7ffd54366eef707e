package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Every change that a person asks for is an event with that name, and one of a schedule says what was before and is after.
func TestBy_isInTheEventOfEachChange(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Real(t))
	a, ctx := d.Admin(), admin.By(t.Context(), "ann@host")
	run(t, d)
	enqueue(t, a, "bad", "dead")
	await(t, a, "dead", admin.TaskDead)
	enqueue(t, a, "long", "running")
	await(t, a, "running", admin.TaskRunning)
	s := producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "other", Payload: []byte(`{"a":1}`)}
	var first admin.Schedule
	do := func(what string, call func() error) {
		t.Helper()
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	slot := func() time.Time {
		got, err := a.Schedules.Get(ctx, "s")
		must(t, err)
		return got.Anchor
	}
	for _, c := range []struct {
		event, field, value string // one that the event has besides by, or ""
		call                func() error
	}{
		{"schedule made", "changes", `{"field":"every","from":"","to":"1h"}`, func() error { return second(a.Schedules.ApplyIf(ctx, s, 0)) }},
		{"schedule changed", "changes", `[{"field":"every","from":"1h","to":"2h"}]`, func() error {
			got, err := a.Schedules.Get(ctx, "s")
			first, s.Every = got.Schedule, 2*time.Hour
			return errors.Join(err, second(a.Schedules.Apply(ctx, s)))
		}},
		{"schedule reverted", "changes", `[{"field":"every","from":"2h","to":"1h"}]`, func() error {
			return second(a.Schedules.Revert(ctx, "s", first.Revision))
		}},
		{"schedule paused", "changes", `[{"field":"paused","from":"false","to":"true"}]`, func() error { return second(a.Schedules.Pause(ctx, "s", "")) }},
		{"schedule resumed", "changes", `[{"field":"paused","from":"true","to":"false"}]`, func() error { return second(a.Schedules.Resume(ctx, "s")) }},
		{"schedule paused", "reason", "the database moves", func() error { return second(a.Schedules.Pause(ctx, "s", "the database moves")) }},
		{"schedule resumed", "schedule", "s", func() error { return second(a.Schedules.Resume(ctx, "s")) }},
		{"schedule triggered", "schedule", "s", func() error { return second(a.Schedules.Trigger(ctx, "s", nil)) }},
		{"backfill", "slots", "1", func() error {
			return second(a.Schedules.Backfill(ctx, "s", producer.Backfilling{From: slot(), To: slot()}))
		}},
		{"schedule deleted", "changes", `{"field":"every","from":"1h","to":""}`, func() error { return second(a.Schedules.Delete(ctx, "s")) }},
		{"schedule restored", "changes", `{"field":"payload.a","from":"","to":"…"}`, func() error { return second(a.Schedules.Restore(ctx, "s")) }},
		{"task retried by hand", "task", "dead", func() error { return second(a.Tasks.Retry(ctx, "dead", false)) }},
		{"task cancel asked", "task", "running", func() error { return second(a.Tasks.Cancel(ctx, "running")) }},
		{"task deleted", "task", "due", func() error {
			enqueue(t, a, "other", "due")
			return second(a.Tasks.Delete(ctx, "due"))
		}},
		{"tasks changed", "filter", `{"queue":"q"}`, func() error {
			for _, id := range []string{"q1", "q2"} {
				enqueue(t, a, "other", id, task.Queue("q"))
			}
			return second(a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.CancelTasks, Filter: admin.TaskFilter{Queue: "q"}}))
		}},
		{"promoted", "release", "v1", func() error { return second(a.Instances.Promote(ctx, "v1")) }},
		{"claims paused", "ms", "1000", func() error { return second(a.Instances.Pause(ctx, time.Second, "")) }},
		{"claims paused", "reason", "failover", func() error { return second(a.Instances.Pause(ctx, time.Second, "failover")) }},
		{"claims resumed", "", "", func() error { return a.Instances.Resume(ctx) }},
	} {
		do(c.event, c.call)
		events, err := a.Activity.Events(ctx, admin.EventQuery{Limit: 100})
		must(t, err)
		var found *admin.Event
		for i := range events.Items {
			if events.Items[i].Event == c.event {
				found = &events.Items[i]
			}
		}
		if found == nil || found.Fields["by"] != "ann@host" || !strings.Contains(found.Fields[c.field], c.value) {
			t.Errorf("%s: %+v", c.event, found)
		}
	}
	events, err := a.Activity.Events(ctx, admin.EventQuery{Limit: 100})
	must(t, err)
	for _, e := range events.Items {
		if strings.HasPrefix(e.Fields["task"], "q") {
			t.Errorf("a task of a bulk has an event of its own: %+v", e)
		}
		if e.Event == "tasks changed" && (e.Fields["tasks"] != "2" || e.Fields["action"] != "cancel") {
			t.Errorf("%+v", e)
		}
	}
	for _, what := range []string{"joined", "leader"} {
		for _, e := range events.Items {
			if e.Event == what && e.Fields["by"] != "" {
				t.Errorf("nobody asked for it: %+v", e)
			}
		}
	}
}

// A client reads the same revisions and deleted schedules that the namespace has.
func TestSchedules_revisionsAndDeletedInJSON(t *testing.T) {
	t.Parallel()
	a, ctx := dispatcher(t, testredis.Client(t)).Admin(), admin.By(context.Background(), "ann@host")
	s := producer.Schedule{Name: "s", Rule: schedule.Every(time.Hour), Task: "other"}
	must(t, second(a.Schedules.Apply(ctx, s)))
	s.Every = time.Minute
	must(t, second(a.Schedules.Apply(ctx, s)))
	got, err := a.Schedules.Get(ctx, "s")
	must(t, err)
	list, err := a.Schedules.List(ctx)
	if err != nil || len(list.Items) != 1 || list.Items[0].Revision != got.Revision || got.Revision == 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if did, err := a.Schedules.ApplyIf(ctx, s, got.Revision-1); !errors.Is(err, admin.ErrRevision) || did.Result != "" {
		t.Errorf("%+v, %v", did, err)
	}
	if did, err := a.Schedules.ApplyIf(ctx, s, got.Revision); err != nil || did.Result != "unchanged" {
		t.Errorf("%+v, %v", did, err)
	}
	must(t, second(a.Schedules.Delete(ctx, "s")))
	revisions, err := a.Schedules.Revisions(ctx, "s", 2, "")
	must(t, err)
	revisions = roundTrip(t, revisions)
	if n := revisions.Items; len(n) != 2 || n[0].What != "deleted" || n[0].Definition != nil || n[0].By != "ann@host" || revisions.Next == "" ||
		n[1].Revision != got.Revision || n[1].Definition.Every != time.Minute || len(n[1].Changes) != 1 {
		t.Errorf("%+v", revisions)
	}
	deleted, err := a.Schedules.Deleted(ctx)
	must(t, err)
	if x := roundTrip(t, deleted).Items; len(x) != 1 || x[0].Deleted.By != "ann@host" || x[0].Revision != 0 || x[0].Every != time.Minute {
		t.Errorf("%+v", deleted)
	}
	if back, err := a.Schedules.Restore(ctx, "s"); err != nil || back.Revision <= got.Revision || back.Deleted != nil {
		t.Errorf("%+v, %v", back, err)
	}
}
