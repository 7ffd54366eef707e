package onbeat_test

// This file is a program that uses a Dispatcher: it must compile without queue, producer and instance.

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

func TestEnqueue_aDuplicateNamesTheTaskThatIsThere(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Caps: onbeat.Caps{Dead: 10}})
	first, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.Unique("inv-42", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	id, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.Unique("inv-42", time.Hour))
	var refused *onbeat.Refused
	if id != first || !errors.Is(err, onbeat.ErrDuplicate) || !errors.As(err, &refused) || refused.By != "unique" || refused.ID != first {
		t.Errorf("%q, %v; %q is there", id, err, first)
	}
	results, err := d.EnqueueAll(t.Context(), []*task.Task{task.New("invoice.send", nil, task.ID(first))})
	if want := (onbeat.Result{ID: first, Err: &onbeat.Refused{By: "id", ID: first}}); err != nil || len(results) != 1 ||
		results[0].ID != want.ID || results[0].Err.Error() != want.Err.Error() {
		t.Errorf("%v, %v", results, err)
	}
	_, err = d.EnqueueAll(t.Context(), []*task.Task{task.New("a", nil), task.New("a b", nil)})
	var batch *onbeat.BatchError
	var field *onbeat.FieldError
	if !errors.Is(err, onbeat.ErrInvalid) || !errors.As(err, &batch) || batch.Index != 1 || !errors.As(err, &field) || field.Field != "type" {
		t.Errorf("%v", err)
	}
}

func TestDispatcher_canBeLookedInto(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Release: "v1"})
	if err := d.Declare([]onbeat.Schedule{{Name: "nightly", Task: "report.build", Rule: schedule.Every(24 * time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	run(t, d)
	var (
		status    onbeat.ScheduleStatus
		page      onbeat.Page
		found     onbeat.Found
		counts    onbeat.Counts
		lane      onbeat.LaneCount
		events    []onbeat.Event
		instances []onbeat.Instance
		err       error
	)
	testredis.Eventually(t, patience, func() bool {
		page, err = d.Queue().List(t.Context(), task.Due, onbeat.ListOptions{Schedule: "nightly"})
		return err == nil && len(page.Tasks) > 0
	}, "its first slot is due, as no instance handles it")
	if status, err = d.Schedules().Get(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	if found = page.Tasks[0]; found.Task.Type != "report.build" || !found.Task.Slot.Equal(status.Anchor) {
		t.Errorf("%+v of %+v", found.Task, status)
	}
	if counts, err = d.Queue().Counts(t.Context()); err != nil || counts.Schedules != 1 || len(counts.Lanes) != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	if lane = counts.Lanes[0]; lane.Lane.Type != "report.build" || lane.Due < 1 {
		t.Errorf("%+v", lane)
	}
	if events, err = d.Queue().Events(t.Context(), time.Time{}, 0); err != nil || len(events) == 0 {
		t.Errorf("%v, %v", events, err)
	}
	if instances, err = d.Instances().List(t.Context()); err != nil || len(instances) != 1 || instances[0].Release != "v1" {
		t.Errorf("%+v, %v", instances, err)
	}
	if _, err := d.Queue().Task(t.Context(), "unknown"); !errors.Is(err, onbeat.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
