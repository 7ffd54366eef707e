package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// scheduleChanges registers the routes that change schedules.
func (s *Server) scheduleChanges() {
	post, one := http.MethodPost, "/schedules/{name}"
	definition, replacement := reflect.TypeFor[producer.Schedule](), reflect.TypeFor[replaceBody]()
	add(s, route{id: "createSchedule", method: post, path: "/schedules", summary: "Make a schedule", role: Admin, status: http.StatusCreated, body: definition, also: reflect.TypeFor[admin.Plan]()}, s.createSchedule)
	add(s, route{id: "replaceSchedule", method: http.MethodPut, path: one, summary: "Make or replace a schedule", role: Admin, body: replacement, errors: []int{http.StatusPreconditionFailed}}, s.replaceSchedule)
	add(s, route{id: "deleteSchedule", method: http.MethodDelete, path: one, summary: "Delete a schedule; tasks of due slots stay", role: Admin}, s.deleteSchedule)
	add(s, route{id: "restoreSchedule", method: post, path: one + "/restore", summary: "Restore a deleted schedule on its old grid", role: Admin}, s.restoreSchedule)
	add(s, route{id: "revertSchedule", method: post, path: one + "/revert", summary: "Set a schedule back to a revision", role: Admin, body: reflect.TypeFor[revertBody]()}, s.revertSchedule)
	add(s, route{id: "pauseSchedule", method: post, path: one + "/pause", summary: "Stop a schedule: no later slot runs", role: Operator, body: reflect.TypeFor[stopBody](), mayBeEmpty: true}, s.pauseSchedule)
	add(s, route{id: "resumeSchedule", method: post, path: one + "/resume", summary: "Resume a paused schedule on its old grid", role: Operator}, s.resumeSchedule)
	add(s, route{id: "triggerSchedule", method: post, path: one + "/trigger", summary: "Run a schedule's task once, now, outside its grid", role: Operator, body: reflect.TypeFor[triggerBody](), mayBeEmpty: true, status: http.StatusCreated}, s.triggerSchedule)
	add(s, route{id: "backfillSchedule", method: post, path: one + "/backfill", summary: "Run the task of every slot in a range of time, oldest first", role: Operator, body: reflect.TypeFor[backfillBody]()}, s.backfillSchedule)
}

type createScheduleIn struct {
	DryRun flag `query:"dry_run" doc:"Only say what would be done."`
}

// planned is what was done to a schedule.
type planned struct {
	Status   int
	Location string `header:"Location"`
	Body     admin.Plan
}

func (s *Server) createSchedule(ctx context.Context, in *createScheduleIn) (*planned, error) {
	want, err := s.wanted(ctx, "")
	if err != nil {
		return nil, err
	}
	dry, err := in.DryRun.value("dry_run")
	if err != nil {
		return nil, err
	}
	if dry {
		return s.plan(ctx, want)
	}
	plan, err := s.admin.Schedules.ApplyIf(ctx, want, 0)
	if errors.Is(err, admin.ErrRevision) {
		return nil, &refusal{http.StatusConflict, "exists", fmt.Sprintf("schedule %q exists", want.Name), "PUT replaces it"}
	}
	return &planned{http.StatusCreated, pathOf("/v1/schedules", want.Name), plan}, located(err, "")
}

// plan says what a change would do.
func (s *Server) plan(ctx context.Context, want producer.Schedule) (*planned, error) {
	plan, err := s.admin.Schedules.Plan(ctx, want)
	return &planned{Status: http.StatusOK, Body: plan}, located(err, "")
}

// wanted reads a definition from the body, and refuses one of a task that the token may not enqueue. A name in the path must be that of the definition, or stand in for it.
func (s *Server) wanted(ctx context.Context, name string) (producer.Schedule, error) {
	var want producer.Schedule
	v := reflect.New(definitionType)
	if err := read(ctx, v.Interface(), "schedule"); err != nil {
		return want, err
	}
	for i, f := range producer.Fields() {
		reflect.ValueOf(f.Of(&want)).Elem().Set(v.Elem().Field(i))
	}
	if name != "" && want.Name != "" && want.Name != name {
		return want, located(&task.FieldError{Field: "name", Value: want.Name, Reason: "not the name in the path",
			Hint: "leave it out; to rename a schedule, make another and delete this one"}, "")
	}
	if name != "" {
		want.Name = name
	}
	return want, mayDefine(ctx, &want)
}

// mayDefine refuses a schedule that enqueues what the token may not enqueue.
func mayDefine(ctx context.Context, s *producer.Schedule) error {
	who := identityOf(ctx)
	if err := mayEnqueue(&who, s.Queue, s.Task); err != nil || s.Heartbeat == nil {
		return err
	}
	return mayEnqueue(&who, s.Queue, "http") // a heartbeat is a request to any URL, as a task of this type is
}

// definitionType is a struct of the fields of a schedule, for code that goes by reflection.
var definitionType = func() reflect.Type {
	fields := make([]reflect.StructField, len(producer.Fields()))
	for i, f := range producer.Fields() {
		tag := f.Name
		if f.Default != "required" {
			tag += ",omitempty"
		}
		fields[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeOf(f.Of(&producer.Schedule{})).Elem(), Tag: reflect.StructTag(`json:"` + tag + `"`)}
	}
	return reflect.StructOf(fields)
}()

// replaceBody is a definition whose name may be left out.
type replaceBody struct{}

// Schema is read by huma.
func (replaceBody) Schema(r huma.Registry) *huma.Schema {
	whole := *r.Schema(reflect.TypeFor[producer.Schedule](), false, "")
	whole.Required = slices.DeleteFunc(slices.Clone(whole.Required), func(name string) bool { return name == "name" })
	return &whole
}

type replaceScheduleIn struct {
	Name        string `path:"name" doc:"The schedule. A slash in the name is written %2F."`
	DryRun      flag   `query:"dry_run" doc:"Only say what would be done."`
	IfMatch     string `header:"If-Match" doc:"The ETag of the schedule that is replaced. Another revision is not replaced."`
	IfNoneMatch string `header:"If-None-Match" doc:"* makes the schedule only if it does not exist."`
}

func (s *Server) replaceSchedule(ctx context.Context, in *replaceScheduleIn) (*planned, error) {
	want, err := s.wanted(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if err := s.mayReplace(ctx, in.Name); err != nil {
		return nil, err
	}
	revision, conditional, err := in.condition()
	if err != nil {
		return nil, err
	}
	dry, err := in.DryRun.value("dry_run")
	if err != nil {
		return nil, err
	}
	if dry {
		return s.plan(ctx, want)
	}
	var plan admin.Plan
	if conditional {
		plan, err = s.admin.Schedules.ApplyIf(ctx, want, revision)
	} else {
		plan, err = s.admin.Schedules.Apply(ctx, want)
	}
	return &planned{Status: http.StatusOK, Body: plan}, located(err, "")
}

// condition returns the revision that the schedule must have, 0 if it must not exist. conditional is false if any will do.
func (in *replaceScheduleIn) condition() (revision int64, conditional bool, err error) {
	switch {
	case in.IfMatch != "" && in.IfNoneMatch != "":
		return 0, false, &task.FieldError{Field: "If-None-Match", Value: in.IfNoneMatch, Reason: "If-Match and If-None-Match exclude each other", Hint: "remove one of them"}
	case in.IfNoneMatch == "*":
		return 0, true, nil
	case in.IfNoneMatch != "":
		return 0, false, &task.FieldError{Field: "If-None-Match", Value: in.IfNoneMatch, Reason: "must be *"}
	case in.IfMatch == "":
		return 0, false, nil
	}
	text, quoted := strings.CutPrefix(in.IfMatch, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	revision, err = strconv.ParseInt(text, 10, 64)
	if err != nil || !quoted || !closed || revision < 1 || text[0] == '+' {
		return 0, false, &task.FieldError{Field: "If-Match", Value: in.IfMatch, Reason: "not the ETag of a schedule", Hint: `such as "12", with its quotes`}
	}
	return revision, true, nil
}

func (s *Server) deleteSchedule(ctx context.Context, in *named) (*reply[admin.Schedule], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	was, err := s.admin.Schedules.Delete(ctx, in.Name)
	return &reply[admin.Schedule]{was}, err
}

func (s *Server) restoreSchedule(ctx context.Context, in *named) (*tagged[admin.Schedule], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	if err := s.mayRestore(ctx, in.Name); err != nil {
		return nil, err
	}
	back, err := s.admin.Schedules.Restore(ctx, in.Name)
	return &tagged[admin.Schedule]{etag(back.Revision), back}, err
}

// revertBody names a revision.
type revertBody struct {
	Revision int64 `json:"revision" minimum:"1"`
}

func (s *Server) revertSchedule(ctx context.Context, in *named) (*reply[admin.Plan], error) {
	var b revertBody
	if err := read(ctx, &b, "reversion"); err != nil {
		return nil, err
	}
	if b.Revision < 1 {
		return nil, located(&task.FieldError{Field: "revision", Value: strconv.FormatInt(b.Revision, 10), Reason: "out of range", Hint: "one of the schedule's revisions"}, "")
	}
	if err := s.mayReplace(ctx, in.Name); err != nil {
		return nil, err
	}
	if err := s.mayRevert(ctx, in.Name, b.Revision); err != nil {
		return nil, err
	}
	plan, err := s.admin.Schedules.Revert(ctx, in.Name, b.Revision)
	return &reply[admin.Plan]{plan}, located(err, "")
}

// stopBody says why a schedule is paused.
type stopBody struct {
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"Shown wherever the pause is. Of a schedule that is paused, only the reason changes."`
}

func (s *Server) pauseSchedule(ctx context.Context, in *named) (*reply[admin.Result], error) {
	var b stopBody
	if len(bodyOf(ctx)) > 0 {
		if err := read(ctx, &b, "pause"); err != nil {
			return nil, err
		}
	}
	did, err := s.admin.Schedules.Pause(ctx, in.Name, b.Reason)
	return resultOf(in.Name, did, "paused", "already paused"), located(err, "")
}

func (s *Server) resumeSchedule(ctx context.Context, in *named) (*reply[admin.Result], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	did, err := s.admin.Schedules.Resume(ctx, in.Name)
	return resultOf(in.Name, did, "resumed", "not paused"), err
}

// resultOf is the reply about a change. The words are for one that was made, and for none.
func resultOf(name string, did bool, yes, no string) *reply[admin.Result] {
	if did {
		return &reply[admin.Result]{admin.Result{Name: name, Result: yes}}
	}
	return &reply[admin.Result]{admin.Result{Name: name, Result: no}}
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
	if err := s.mayRun(ctx, in.Name); err != nil {
		return nil, err
	}
	id, err := s.admin.Schedules.Trigger(ctx, in.Name, b.Payload)
	return &reply[admin.Enqueued]{admin.Enqueued{ID: id}}, located(err, "")
}

// mayRun refuses to run the tasks of a schedule that the token may not enqueue.
func (s *Server) mayRun(ctx context.Context, name string) error {
	who := identityOf(ctx)
	if len(who.Queues)+len(who.Types) == 0 {
		return nil
	}
	d, err := s.admin.Schedules.Get(ctx, name)
	if err != nil {
		return err
	}
	return mayEnqueue(&who, d.Queue, d.Task)
}

// mayReplace refuses to put a schedule in the place of one whose tasks the token may not enqueue. There may be none.
func (s *Server) mayReplace(ctx context.Context, name string) error {
	if err := s.mayRun(ctx, name); !errors.Is(err, task.ErrNotFound) {
		return err
	}
	return nil
}

// mayRestore refuses to restore a schedule of a task that the token may not enqueue.
func (s *Server) mayRestore(ctx context.Context, name string) error {
	who := identityOf(ctx)
	if len(who.Queues)+len(who.Types) == 0 {
		return nil
	}
	gone, err := s.admin.Schedules.Deleted(ctx)
	for i := range gone.Items {
		if d := &gone.Items[i]; d.Name == name {
			return mayDefine(ctx, &d.Schedule)
		}
	}
	return err // Restore says that there is none
}

// mayRevert refuses a revision of a task that the token may not enqueue. A revision never changes. If there is none of this
// number, Revert says so.
func (s *Server) mayRevert(ctx context.Context, name string, revision int64) error {
	who := identityOf(ctx)
	for after := ""; len(who.Queues)+len(who.Types) > 0; {
		page, err := s.admin.Schedules.Revisions(ctx, name, 100, after)
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			if r.Revision == revision && r.Definition != nil {
				return mayDefine(ctx, r.Definition)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	return nil
}

// backfillBody says which slots are run.
type backfillBody struct {
	From   moment `json:"from" doc:"First slot at or after this time: RFC 3339, a date, or how long ago."`
	To     moment `json:"to,omitempty" doc:"Last slot at or before this time. Default now."`
	Again  bool   `json:"again,omitempty" doc:"Also run the slots that a backfill of the last seven days has run, unless they still wait or run."`
	Failed bool   `json:"failed,omitempty" doc:"Only the slots whose work was not done: those that failed, were missed, skipped, cancelled or lost. None from before the schedule was made."`
	// DryRun is named as in a bulk change.
	DryRun bool `json:"dry_run,omitempty" doc:"Only count them."`
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
	if err := s.mayRun(ctx, in.Name); err != nil {
		return nil, err
	}
	got, err := s.admin.Schedules.Backfill(ctx, in.Name, producer.Backfilling{From: from, To: to, Again: b.Again, Failed: b.Failed, DryRun: b.DryRun})
	if got.Refused > 0 {
		refusedForNow(ctx)
	}
	return &reply[admin.Backfilled]{got}, located(err, "")
}
