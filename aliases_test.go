package onbeat_test

// This file is a program that uses a Dispatcher: it must compile without queue, producer and instance.

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestEnqueue_aDuplicateNamesTheTaskThatIsThere(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Caps: onbeat.Caps{Dead: 10}})
	first, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.Unique("inv-42", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	id, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.Unique("inv-42", time.Hour))
	var refused *task.Refused
	if id != first || !errors.Is(err, task.ErrDuplicate) || !errors.As(err, &refused) || refused.By != "unique" || refused.ID != first {
		t.Errorf("%q, %v; %q is there", id, err, first)
	}
	results, err := d.EnqueueAll(t.Context(), []*task.Task{task.New("invoice.send", nil, task.ID(first))})
	if want := (onbeat.Result{ID: first, Err: &task.Refused{By: "id", ID: first}}); err != nil || len(results) != 1 ||
		results[0].ID != want.ID || results[0].Err.Error() != want.Err.Error() {
		t.Errorf("%v, %v", results, err)
	}
	_, err = d.EnqueueAll(t.Context(), []*task.Task{task.New("a", nil), task.New("a b", nil)})
	var batch *onbeat.BatchError
	var field *task.FieldError
	if !errors.Is(err, task.ErrInvalid) || !errors.As(err, &batch) || batch.Index != 1 || !errors.As(err, &field) || field.Field != "type" {
		t.Errorf("%v", err)
	}
}

func TestDispatcher_canBeLookedInto(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Release: "v1"})
	if err := d.Declare([]onbeat.Schedule{{Name: "nightly", Task: "report.build", Rule: schedule.Every(24 * time.Hour), Elsewhere: true}}); err != nil {
		t.Fatal(err)
	}
	run(t, d)
	a, ctx := d.Admin(), t.Context()
	var page admin.List[admin.Task]
	var err error
	testredis.Eventually(t, patience, func() bool {
		page, err = a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskWaiting, Schedule: "nightly"}})
		return err == nil && len(page.Items) > 0
	}, "its first slot is due, as no instance handles it")
	s, err := a.Schedules.Get(ctx, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	if found := page.Items[0]; found.Type != "report.build" || !found.Slot.Equal(s.Anchor) {
		t.Errorf("%+v of %+v", found, s)
	}
	counts, err := a.Activity.Counts(ctx)
	if err != nil || counts.Schedules != 1 || len(counts.Lanes) != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	if lane := counts.Lanes[0]; lane.Type != "report.build" || lane.Waiting < 1 {
		t.Errorf("%+v", lane)
	}
	if events, err := a.Activity.Events(ctx, admin.EventQuery{}); err != nil || len(events.Items) == 0 {
		t.Errorf("%v, %v", events, err)
	}
	if list, err := a.Instances.List(ctx); err != nil || len(list.Items) != 1 || list.Items[0].Release != "v1" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := a.Tasks.Get(ctx, "unknown"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
