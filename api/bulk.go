package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// bulk registers actions on all tasks that a filter matches.
func (s *Server) bulk() {
	get, post, one := http.MethodGet, http.MethodPost, "/bulk/{id}"
	add(s, route{id: "listBulks", method: get, path: "/bulk", summary: "List the bulk actions of the last week, the newest first: at most 100", role: Viewer}, s.listBulks)
	add(s, route{id: "beginBulk", method: post, path: "/bulk", summary: "Cancel, retry or delete all tasks that a filter matches, done by the instances", role: Operator, body: reflect.TypeFor[admin.BulkSpec](), status: http.StatusAccepted}, s.beginBulk)
	add(s, route{id: "getBulk", method: get, path: one, summary: "Show how far a bulk action is", role: Viewer}, s.getBulk)
	add(s, route{id: "stopBulk", method: post, path: one + "/stop", summary: "Stop a bulk action, after the page that it is at", role: Operator}, s.stopBulk)
	add(s, route{id: "resumeBulk", method: post, path: one + "/resume", summary: "Let a bulk action that was stopped, or has failed, go on where it was", role: Operator}, s.resumeBulk)
}

func (s *Server) listBulks(ctx context.Context, _ *struct{}) (*reply[admin.List[admin.BulkTask]], error) {
	list, err := s.admin.Bulks.List(ctx)
	return &reply[admin.List[admin.BulkTask]]{list}, err
}

// begun is a bulk action that has begun, and where to ask how far it is.
type begun struct {
	Location string `header:"Location"`
	Body     admin.BulkTask
}

func (s *Server) beginBulk(ctx context.Context, _ *struct{}) (*begun, error) {
	var b admin.BulkSpec
	if err := read(ctx, &b, "bulk action"); err != nil {
		return nil, err
	}
	if err := mayBulk(ctx, b.Action, false); err != nil {
		return nil, err
	}
	if key, ok := ctx.Value(derivedKey{}).(seed); ok { // the answer to an earlier try may have been lost
		b.ID = key.taskID(0)
	}
	e, err := s.admin.Bulks.Begin(ctx, b)
	if err != nil {
		return nil, located(err, "")
	}
	return &begun{Location: pathOf("/v1/bulk", e.ID), Body: e}, nil
}

// mayBulk refuses what the sender may not do to many tasks, and a body that does not say which tasks.
func mayBulk(ctx context.Context, a admin.Action, dryRun bool) error {
	if !hasField(bodyOf(ctx), "filter") { // left out by mistake, it would match all
		return located(&task.FieldError{Field: "filter", Reason: "missing", Hint: "{} matches all tasks"}, "")
	}
	if dryRun {
		return nil
	}
	return mayAct(ctx, a)
}

// mayAct refuses an action on many tasks that the sender may neither begin nor let go on.
func mayAct(ctx context.Context, a admin.Action) error {
	who := identityOf(ctx)
	switch {
	case a == admin.RetryTasks && len(who.Queues)+len(who.Types) > 0: // their schedules may enqueue other types by now
		return &refusal{http.StatusForbidden, "forbidden", whom(&who) + " may not retry many tasks as their schedules are now", string(admin.RetryAsWas) + " keeps what they were"}
	case a == admin.DeleteTasks && !who.Role.May(Admin):
		return &refusal{http.StatusForbidden, "forbidden", whom(&who) + " may not delete tasks in bulk", "it needs the role admin"}
	}
	return nil
}

func (s *Server) getBulk(ctx context.Context, in *identified) (*reply[admin.BulkTask], error) {
	e, err := s.admin.Bulks.Get(ctx, in.ID)
	return &reply[admin.BulkTask]{e}, err
}

func (s *Server) stopBulk(ctx context.Context, in *identified) (*reply[admin.BulkTask], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	e, err := s.admin.Bulks.Stop(ctx, in.ID)
	return &reply[admin.BulkTask]{e}, err
}

func (s *Server) resumeBulk(ctx context.Context, in *identified) (*reply[admin.BulkTask], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	e, err := s.admin.Bulks.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := mayAct(ctx, e.Action); err != nil {
		return nil, err
	}
	e, err = s.admin.Bulks.Resume(ctx, in.ID)
	return &reply[admin.BulkTask]{e}, err
}
