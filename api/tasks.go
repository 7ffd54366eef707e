package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// tasks registers the routes that show, add and change tasks.
func (s *Server) tasks() {
	get, post, one := http.MethodGet, http.MethodPost, "/tasks/{id}"
	add(s, route{id: "listTasks", method: get, path: "/tasks", summary: "List tasks", role: Viewer}, s.listTasks)
	add(s, route{id: "enqueue", method: post, path: "/tasks", summary: "Add one task, or a batch of them", role: Operator, body: reflect.TypeFor[enqueueBody](), status: http.StatusCreated, also: reflect.TypeFor[admin.List[admin.Enqueued]]()}, s.enqueue)
	add(s, route{id: "getTask", method: get, path: one, summary: "Show a task", role: Viewer}, s.getTask)
	add(s, route{id: "deleteTask", method: http.MethodDelete, path: one, summary: "Cancel a task, or delete an ended task", role: Operator}, s.deleteTask)
	add(s, route{id: "cancelTask", method: post, path: one + "/cancel", summary: "Cancel a task, or ask a running one to stop", role: Operator}, s.cancelTask)
	add(s, route{id: "retryTask", method: post, path: one + "/retry", summary: "Make a dead task due again", role: Operator, body: reflect.TypeFor[retryBody](), mayBeEmpty: true}, s.retryTask)
	add(s, route{id: "listFailures", method: get, path: "/failures", summary: "Group the dead tasks by type and error, a page of them at a time", role: Viewer}, s.listFailures)
	add(s, route{id: "bulkTasks", method: post, path: "/tasks/bulk", summary: "Cancel, retry or delete the tasks that a filter matches, a page at a time", role: Operator, body: reflect.TypeFor[admin.Bulk]()}, s.bulkTasks)
}

type listTasksIn struct {
	State    string `query:"state" enum:"running,waiting,retrying,planned,dead,done" doc:"Only tasks in this state."`
	Queue    string `query:"queue" doc:"Only tasks in this queue. * stands for any text."`
	Type     string `query:"type" doc:"Only tasks of this type. * stands for any text."`
	Schedule string `query:"schedule" doc:"Only tasks of this schedule. * stands for any text."`
	Key      string `query:"key" doc:"Only tasks with this key."`
	Error    string `query:"error" doc:"Only tasks whose last error is this one, but for times, IDs and other long numbers in it. * stands for any text."`
	Backfill flag   `query:"backfill" doc:"Only tasks of backfills."`
	Brief    flag   `query:"brief" doc:"Leave out payloads, and all failures of a task but the last. Such an answer is compressed."`
	Page
}

func (s *Server) listTasks(ctx context.Context, in *listTasksIn) (*reply[admin.List[admin.Task]], error) {
	limit, err := in.Limit.within("limit", 100, 1000)
	if err != nil {
		return nil, err
	}
	brief, err := in.Brief.value("brief")
	if err != nil {
		return nil, err
	}
	filter := in.filter()
	if filter.Backfill, err = in.Backfill.value("backfill"); err != nil {
		return nil, err
	}
	list, err := s.admin.Tasks.List(ctx, admin.TaskQuery{TaskFilter: filter, Limit: limit, After: in.After, Brief: brief})
	return &reply[admin.List[admin.Task]]{list}, err
}

func (in *listTasksIn) filter() admin.TaskFilter {
	return admin.TaskFilter{State: admin.TaskState(in.State), Queue: in.Queue, Type: in.Type, Schedule: in.Schedule, Key: in.Key, Error: in.Error}
}

type listFailuresIn struct {
	Queue    string `query:"queue" doc:"Only tasks in this queue. * stands for any text."`
	Type     string `query:"type" doc:"Only tasks of this type. * stands for any text."`
	Schedule string `query:"schedule" doc:"Only tasks of this schedule. * stands for any text."`
	Key      string `query:"key" doc:"Only tasks with this key."`
	Error    string `query:"error" doc:"Only tasks that died of this error. * stands for any text."`
	After    string `query:"after" doc:"The next of the page before. Groups of the same type and error on two pages are one."`
}

func (s *Server) listFailures(ctx context.Context, in *listFailuresIn) (*reply[admin.List[admin.FailureGroup]], error) {
	list, err := s.admin.Tasks.Failures(ctx, admin.FailureQuery{
		TaskFilter: admin.TaskFilter{Queue: in.Queue, Type: in.Type, Schedule: in.Schedule, Key: in.Key, Error: in.Error}, After: in.After,
	})
	return &reply[admin.List[admin.FailureGroup]]{list}, err
}

func (s *Server) getTask(ctx context.Context, in *identified) (*reply[admin.Task], error) {
	t, err := s.admin.Tasks.Get(ctx, in.ID)
	return &reply[admin.Task]{t}, err
}

func (s *Server) deleteTask(ctx context.Context, in *identified) (*reply[admin.Result], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	was, err := s.admin.Tasks.Delete(ctx, in.ID)
	return stopped(in.ID, was, "deleted"), err
}

func (s *Server) cancelTask(ctx context.Context, in *identified) (*reply[admin.Result], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	was, err := s.admin.Tasks.Cancel(ctx, in.ID)
	return stopped(in.ID, was, "cancelled"), err
}

// stopped says what became of a task that was in a state. A running one is only asked to stop.
func stopped(id string, was admin.TaskState, result string) *reply[admin.Result] {
	if was == admin.TaskRunning {
		result = "asked to stop"
	}
	return &reply[admin.Result]{admin.Result{Name: id, Result: result, Was: was}}
}

// retryBody may be left out.
type retryBody struct {
	AsItWas bool `json:"as_it_was,omitempty" doc:"Keep the payload and settings that a task of a slot had, even if its schedule says something else now."`
}

func (s *Server) retryTask(ctx context.Context, in *identified) (*reply[admin.Result], error) {
	var b retryBody
	if len(bodyOf(ctx)) > 0 {
		if err := read(ctx, &b, "retry"); err != nil {
			return nil, err
		}
	}
	if !b.AsItWas {
		if err := s.mayRetry(ctx, in.ID); err != nil {
			return nil, err
		}
	}
	result, err := s.admin.Tasks.Retry(ctx, in.ID, b.AsItWas)
	return &reply[admin.Result]{admin.Result{Name: in.ID, Result: result, Was: admin.TaskDead}}, err
}

// mayRetry refuses to retry a slot whose schedule enqueues by now what the token may not enqueue.
func (s *Server) mayRetry(ctx context.Context, id string) error {
	who := identityOf(ctx)
	if len(who.Queues)+len(who.Types) == 0 {
		return nil
	}
	t, err := s.admin.Tasks.Get(ctx, id)
	if err != nil || t.Schedule == "" {
		return err
	}
	now, err := s.admin.Schedules.Get(ctx, t.Schedule)
	switch {
	case errors.Is(err, task.ErrNotFound):
		return nil // then the task is as it was
	case err != nil:
		return err
	case now.Task == t.Type && cmp.Or(now.Queue, task.DefaultQueue) == cmp.Or(t.Queue, task.DefaultQueue):
		return nil
	}
	return asItWas(mayEnqueue(&who, now.Queue, now.Task))
}

// asItWas adds to a refusal how the task can be retried.
func asItWas(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return &refusal{r.status, r.kind, r.text, "as_it_was retries it with the type and queue that it had"}
	}
	return err
}

func (s *Server) bulkTasks(ctx context.Context, _ *struct{}) (*reply[admin.BulkResult], error) {
	var b admin.Bulk
	if err := read(ctx, &b, "bulk"); err != nil {
		return nil, err
	}
	if err := mayBulk(ctx, b.Action, b.DryRun); err != nil {
		return nil, err
	}
	out, err := s.admin.Tasks.Bulk(ctx, b)
	return &reply[admin.BulkResult]{out}, located(err, "")
}
