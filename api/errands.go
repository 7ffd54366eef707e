package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// errands registers what this server does to all tasks that a filter matches.
func (s *Server) errands() {
	get, post, one := http.MethodGet, http.MethodPost, "/errands/{id}"
	add(s, route{id: "listErrands", method: get, path: "/errands", summary: "List the errands of the last week, the newest first: at most 100", role: Viewer}, s.listErrands)
	add(s, route{id: "beginErrand", method: post, path: "/errands", summary: "Cancel, retry or delete all tasks that a filter matches, done by the server", role: Operator, body: reflect.TypeFor[admin.ErrandSpec](), status: http.StatusAccepted}, s.beginErrand)
	add(s, route{id: "getErrand", method: get, path: one, summary: "Show how far an errand is", role: Viewer}, s.getErrand)
	add(s, route{id: "stopErrand", method: post, path: one + "/stop", summary: "Stop an errand, after the page that it is at", role: Operator}, s.stopErrand)
	add(s, route{id: "resumeErrand", method: post, path: one + "/resume", summary: "Let an errand that was stopped, or has failed, go on where it was", role: Operator}, s.resumeErrand)
}

func (s *Server) listErrands(ctx context.Context, _ *struct{}) (*reply[admin.List[admin.Errand]], error) {
	list, err := s.admin.Errands.List(ctx)
	return &reply[admin.List[admin.Errand]]{list}, err
}

// begun is an errand that has begun, and where to ask how far it is.
type begun struct {
	Location string `header:"Location"`
	Body     admin.Errand
}

func (s *Server) beginErrand(ctx context.Context, _ *struct{}) (*begun, error) {
	var b admin.ErrandSpec
	if err := read(ctx, &b, "errand"); err != nil {
		return nil, err
	}
	if err := mayBulk(ctx, b.Action, false); err != nil {
		return nil, err
	}
	if key, ok := ctx.Value(derivedKey{}).(seed); ok { // the answer to an earlier try may have been lost
		b.ID = key.taskID(0)
	}
	e, err := s.admin.Errands.Begin(ctx, b)
	if err != nil {
		return nil, located(err, "")
	}
	s.work.look()
	return &begun{Location: pathOf("/v1/errands", e.ID), Body: e}, nil
}

// mayBulk refuses what the sender may not do to many tasks, and a body that does not say which tasks.
func mayBulk(ctx context.Context, a admin.Action, dryRun bool) error {
	if !hasField(bodyOf(ctx), "filter") { // left out by mistake, it would match all
		return located(&task.FieldError{Field: "filter", Reason: "missing", Hint: "{} matches all tasks"}, "")
	}
	if dryRun {
		return nil
	}
	return mayDelete(ctx, a)
}

// mayDelete refuses to delete many tasks to those who may not.
func mayDelete(ctx context.Context, a admin.Action) error {
	if who := identityOf(ctx); a == admin.DeleteTasks && !who.Role.May(Admin) {
		return &refusal{http.StatusForbidden, "forbidden", whom(&who) + " may not delete tasks in bulk", "it needs the role admin"}
	}
	return nil
}

func (s *Server) getErrand(ctx context.Context, in *identified) (*reply[admin.Errand], error) {
	e, err := s.admin.Errands.Get(ctx, in.ID)
	return &reply[admin.Errand]{e}, err
}

func (s *Server) stopErrand(ctx context.Context, in *identified) (*reply[admin.Errand], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	e, err := s.admin.Errands.Stop(ctx, in.ID)
	return &reply[admin.Errand]{e}, err
}

func (s *Server) resumeErrand(ctx context.Context, in *identified) (*reply[admin.Errand], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	e, err := s.admin.Errands.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := mayDelete(ctx, e.Action); err != nil {
		return nil, err
	}
	e, err = s.admin.Errands.Resume(ctx, in.ID)
	s.work.look()
	return &reply[admin.Errand]{e}, err
}
