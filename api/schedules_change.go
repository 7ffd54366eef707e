package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// scheduleChanges registers what changes schedules.
func (s *Server) scheduleChanges() {
	post, one := http.MethodPost, "/schedules/{name}"
	definition := reflect.TypeFor[admin.Definition]()
	add(s, route{id: "createSchedule", method: post, path: "/schedules", summary: "Make a schedule", role: Admin, status: http.StatusCreated, body: definition}, s.createSchedule)
	add(s, route{id: "replaceSchedule", method: http.MethodPut, path: one, summary: "Make a schedule, or replace the one of that name", role: Admin, body: definition, errors: []int{http.StatusPreconditionFailed}}, s.replaceSchedule)
	add(s, route{id: "deleteSchedule", method: http.MethodDelete, path: one, summary: "Delete a schedule; tasks of slots that have come stay", role: Admin}, s.deleteSchedule)
	add(s, route{id: "pauseSchedule", method: post, path: one + "/pause", summary: "Stop a schedule: no later slot runs", role: Operator}, s.pauseSchedule)
	add(s, route{id: "resumeSchedule", method: post, path: one + "/resume", summary: "Let a paused schedule go on, on its old grid", role: Operator}, s.resumeSchedule)
	add(s, route{id: "triggerSchedule", method: post, path: one + "/trigger", summary: "Run a schedule's task once, now, outside its grid", role: Operator, body: reflect.TypeFor[triggerBody](), status: http.StatusCreated}, s.triggerSchedule)
	add(s, route{id: "backfillSchedule", method: post, path: one + "/backfill", summary: "Run the task of every slot in a range of time, oldest first", role: Operator, body: reflect.TypeFor[backfillBody]()}, s.backfillSchedule)
}

type createScheduleIn struct {
	DryRun flag `query:"dry_run" doc:"Only say what would be done."`
}

// planned is what was done to a schedule, and its new revision.
type planned struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     admin.Plan
}

func (s *Server) createSchedule(ctx context.Context, in *createScheduleIn) (*planned, error) {
	want, err := s.wanted(ctx, "")
	if err != nil {
		return nil, err
	}
	if _, err := s.admin.Schedules.Get(ctx, want.Name); err == nil {
		return nil, &refusal{http.StatusConflict, "exists", "schedule \"" + want.Name + "\" exists", "PUT replaces it"}
	}
	return s.apply(ctx, want, in.DryRun, http.StatusCreated)
}

// wanted reads a definition from the body. A name in the path must be that of the definition, or stand in for it.
func (s *Server) wanted(ctx context.Context, name string) (producer.Schedule, error) {
	var d admin.Definition
	if err := read(ctx, &d, "schedule"); err != nil {
		return producer.Schedule{}, err
	}
	if name != "" && d.Name != "" && d.Name != name {
		return producer.Schedule{}, located(&task.FieldError{Field: "name", Value: d.Name, Reason: "not the name in the path",
			Hint: "leave it out; to rename a schedule, make another and delete this one"}, "")
	}
	if name != "" {
		d.Name = name
	}
	want, err := d.Schedule()
	return want, located(err, "")
}

func (s *Server) apply(ctx context.Context, want producer.Schedule, dryRun flag, status int) (*planned, error) {
	dry, err := dryRun.value("dry_run")
	if err != nil {
		return nil, err
	}
	if dry {
		plan, err := s.admin.Schedules.Plan(ctx, want)
		return &planned{Status: http.StatusOK, Body: plan}, located(err, "")
	}
	plan, err := s.admin.Schedules.Apply(ctx, want)
	return &planned{Status: status, Body: plan}, located(err, "")
}

type replaceScheduleIn struct {
	Name   string `path:"name" doc:"The schedule. A slash in the name is written %2F."`
	DryRun flag   `query:"dry_run" doc:"Only say what would be done."`
}

func (s *Server) replaceSchedule(ctx context.Context, in *replaceScheduleIn) (*planned, error) {
	want, err := s.wanted(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return s.apply(ctx, want, in.DryRun, http.StatusOK)
}

func (s *Server) deleteSchedule(ctx context.Context, in *named) (*reply[admin.Schedule], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	was, err := s.admin.Schedules.Delete(ctx, in.Name)
	return &reply[admin.Schedule]{was}, err
}

func (s *Server) pauseSchedule(ctx context.Context, in *named) (*reply[admin.Result], error) {
	return s.toggle(ctx, in.Name, s.admin.Schedules.Pause, "paused", "already paused")
}

func (s *Server) resumeSchedule(ctx context.Context, in *named) (*reply[admin.Result], error) {
	return s.toggle(ctx, in.Name, s.admin.Schedules.Resume, "resumed", "not paused")
}

// toggle pauses or resumes a schedule. The words are for a change, and for none.
func (s *Server) toggle(ctx context.Context, name string, do func(context.Context, string) (bool, error), yes, no string) (*reply[admin.Result], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	did, err := do(ctx, name)
	out := &reply[admin.Result]{admin.Result{Name: name, Result: no}}
	if did {
		out.Body.Result = yes
	}
	return out, err
}

// triggerBody says how a schedule's task is run once.
type triggerBody struct {
	Payload json.RawMessage `json:"payload,omitempty" doc:"In place of the schedule's."`
}

func (s *Server) triggerSchedule(ctx context.Context, in *named) (*reply[admin.Enqueued], error) {
	var b triggerBody
	if len(bodyOf(ctx)) > 0 {
		if err := read(ctx, &b, "trigger"); err != nil {
			return nil, err
		}
	}
	if who := identityOf(ctx); len(who.Queues)+len(who.Types) > 0 {
		d, err := s.admin.Schedules.Get(ctx, in.Name)
		if err != nil {
			return nil, err
		}
		if err := mayEnqueue(&who, d.Queue, d.Task); err != nil {
			return nil, err
		}
	}
	id, err := s.admin.Schedules.Trigger(ctx, in.Name, b.Payload)
	return &reply[admin.Enqueued]{admin.Enqueued{ID: id, Added: true}}, located(err, "")
}

// backfillBody says which slots are run.
type backfillBody struct {
	From  moment `json:"from" doc:"First slot at or after this time: RFC 3339, a date, or how long ago."`
	To    moment `json:"to,omitempty" doc:"Last slot at or before this time. Default now."`
	Again bool   `json:"again,omitempty" doc:"Also run the slots that an earlier backfill has run."`
}

func (s *Server) backfillSchedule(ctx context.Context, in *named) (*reply[admin.Backfilled], error) {
	var b backfillBody
	if err := read(ctx, &b, "backfill"); err != nil {
		return nil, err
	}
	if b.From == "" {
		return nil, located(&task.FieldError{Field: "from", Reason: "missing", Hint: "RFC 3339, a date, or how long ago"}, "")
	}
	if b.To == "" {
		b.To = "0s"
	}
	from, err := s.at(ctx, "from", b.From)
	if err != nil {
		return nil, located(err, "")
	}
	to, err := s.at(ctx, "to", b.To)
	if err != nil {
		return nil, located(err, "")
	}
	got, err := s.admin.Schedules.Backfill(ctx, in.Name, producer.Backfilling{From: from, To: to, Again: b.Again})
	return &reply[admin.Backfilled]{got}, located(err, "")
}
