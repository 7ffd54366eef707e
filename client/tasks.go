package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Bounds of one request that adds tasks. Redis takes so many as a whole or not at all.
const (
	batchTasks = queue.MaxBatch
	batchBytes = 4 << 20
)

// tasks are the tasks of a namespace behind an API.
type tasks struct{ c *conn }

// madeKeep is how long an ended task whose ID the client made is kept: as long as the API keeps one whose ID comes from an
// Idempotency-Key.
const madeKeep = "90s"

func (t *tasks) Enqueue(ctx context.Context, list []*task.Task) ([]admin.Enqueued, error) {
	for i, x := range list {
		if err := check(x); err != nil {
			return nil, &producer.BatchError{Index: i, Of: len(list), Err: err}
		}
	}
	made := nameAll(list)
	specs, err := specsOf(list, made)
	out := make([]admin.Enqueued, 0, len(list))
	for err == nil && len(out) < len(list) {
		at := len(out)
		part := specs[at : at+portion(specs[at:])]
		var got admin.List[admin.Enqueued]
		err = t.c.post(ctx, "/tasks", map[string]any{"tasks": part}, &got)
		if err == nil && len(got.Items) != len(part) {
			err = t.c.strange(fmt.Sprintf("answers for %d of %d tasks", len(got.Items), len(part)))
		}
		err = ofBatch(err, at, len(list))
		if refused, ok := errors.AsType[*producer.BatchError](err); ok { // none of them was added
			apart := made[refused.Index] && field.Of(refused).Field == "id"
			unname(list[at:], made[at:])
			if apart { // in a namespace that is split: the API makes an ID that lies where the key or the type of the task does
				specs, err = specsOf(list, made)
			}
			continue
		}
		if err != nil {
			break
		}
		for i := range got.Items {
			name(list[at+i], &got.Items[i], made[at+i])
		}
		out = append(out, got.Items...)
	}
	return out, err
}

// nameAll gives each task that has no ID one, so that a caller who does not know whether the tasks were added can ask again. It returns
// which tasks these are.
func nameAll(list []*task.Task) (made []bool) {
	made = make([]bool, len(list))
	now := time.Now()
	for i, t := range list {
		if made[i] = t.ID == ""; made[i] {
			t.ID = task.NewID(now)
		}
	}
	return made
}

// unname takes back the IDs that nameAll gave.
func unname(list []*task.Task, made []bool) {
	for i, t := range list {
		if made[i] {
			t.ID, made[i] = "", false
		}
	}
}

// check refuses what the API would refuse for any limit of payloads: so no task of many is added if one of them is invalid.
func check(t *task.Task) error {
	if err := t.Validate(task.Limits{Payload: math.MaxInt}); err != nil {
		return err
	}
	if len(t.Payload) > 0 && !json.Valid(t.Payload) {
		return &task.FieldError{Field: "payload", Reason: "not JSON", Hint: "the API takes only JSON"}
	}
	return nil
}

// specsOf writes tasks. Those whose ID the client made say how long they are kept: an ID of the caller's choice is kept for a day.
func specsOf(list []*task.Task, made []bool) ([]json.RawMessage, error) {
	specs := make([]json.RawMessage, len(list))
	for i, t := range list {
		spec := admin.SpecOf(t)
		if made[i] && t.Keep == 0 {
			spec.Keep = madeKeep
		}
		var err error
		if specs[i], err = json.Marshal(spec); err != nil {
			return nil, &producer.BatchError{Index: i, Of: len(list), Err: err}
		}
	}
	return specs, nil
}

// portion returns how many tasks one request takes.
func portion(specs []json.RawMessage) int {
	size := 0
	for i, s := range specs {
		if size += len(s); i > 0 && (i == batchTasks || size > batchBytes) {
			return i
		}
	}
	return len(specs)
}

// name gives a task that was added without an ID the one that it got. A task that holds the ID that this call made for it was added by an
// earlier try of the call.
func name(t *task.Task, e *admin.Enqueued, made bool) {
	switch {
	case t.ID == "":
		t.ID = e.ID
	case made && e.ID == t.ID && e.There() != nil:
		e.Err = nil
	}
}

// ofBatch says of a refused field, such as tasks[3].type, which task of the whole list has it.
func ofBatch(err error, at, of int) error {
	f := field.Of(err)
	if f == nil {
		return err
	}
	rest, ok := strings.CutPrefix(f.Field, "tasks[")
	index, rest, ok2 := strings.Cut(rest, "]")
	i, bad := strconv.Atoi(index)
	if !ok || !ok2 || bad != nil || i < 0 || i >= of-at {
		return err
	}
	one := *f
	one.Field = strings.TrimPrefix(rest, ".")
	return &producer.BatchError{Index: at + i, Of: of, Err: &one}
}

func (t *tasks) Get(ctx context.Context, id string) (out admin.Task, err error) {
	if id == "" {
		return out, missing("task")
	}
	err = t.c.get(ctx, place("/tasks/%s", id), nil, &out)
	out.Payload = compact(out.Payload)
	return out, err
}

// missing is the error for an empty name, which no path can have.
func missing(noun string) error { return fmt.Errorf("%s %q: %w", noun, "", task.ErrNotFound) }

// compact returns JSON without the white space around it.
func compact(b json.RawMessage) json.RawMessage { return bytes.TrimSpace(b) }

func (t *tasks) List(ctx context.Context, o admin.TaskQuery) (admin.List[admin.Task], error) {
	query := url.Values{}
	setFilter(query, &o.TaskFilter)
	set(query, "after", o.After)
	limit(query, o.Limit, 1000)
	if o.Brief {
		query.Set("brief", "true")
	}
	return listOf[admin.Task](ctx, t.c, "/tasks", query)
}

func (t *tasks) Failures(ctx context.Context, o admin.FailureQuery) (admin.List[admin.FailureGroup], error) {
	query := url.Values{}
	o.State = "" // they are dead
	setFilter(query, &o.TaskFilter)
	set(query, "after", o.After)
	return listOf[admin.FailureGroup](ctx, t.c, "/failures", query)
}

func setFilter(query url.Values, f *admin.TaskFilter) {
	set(query, "state", string(f.State))
	set(query, "queue", f.Queue)
	set(query, "type", f.Type)
	set(query, "schedule", f.Schedule)
	set(query, "key", f.Key)
	set(query, "error", f.Error)
	if f.Backfill {
		query.Set("backfill", "true")
	}
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// limit sets the limit of a page. If n is not positive, the default holds; if n is too large, the largest limit does.
func limit(query url.Values, n, most int) {
	if n > 0 {
		query.Set("limit", strconv.Itoa(min(n, most)))
	}
}

// listOf reads a page.
func listOf[T any](ctx context.Context, c *conn, path string, query url.Values) (admin.List[T], error) {
	var page admin.List[T]
	err := c.get(ctx, path, query, &page)
	if page.Items == nil {
		page.Items = []T{}
	}
	return page, err
}

func (t *tasks) Cancel(ctx context.Context, id string) (admin.TaskState, error) {
	return t.end(ctx, &call{method: http.MethodPost, path: place("/tasks/%s/cancel", id)}, id)
}

func (t *tasks) Delete(ctx context.Context, id string) (admin.TaskState, error) {
	return t.end(ctx, &call{method: http.MethodDelete, path: place("/tasks/%s", id)}, id)
}

// end cancels or deletes a task, and returns the state in which it was found.
func (t *tasks) end(ctx context.Context, x *call, id string) (admin.TaskState, error) {
	if id == "" {
		return "", missing("task")
	}
	var out admin.Result
	err := t.c.do(ctx, x, &out)
	var state *admin.StateError
	if errors.As(err, &state) {
		return state.State, err
	}
	return out.Was, err
}

func (t *tasks) Retry(ctx context.Context, id string, asItWas bool) (string, error) {
	if id == "" {
		return "", missing("task")
	}
	var body any
	if asItWas {
		body = map[string]bool{"as_it_was": true}
	}
	var out admin.Result
	err := t.c.post(ctx, place("/tasks/%s/retry", id), body, &out)
	return out.Result, err
}

func (t *tasks) Bulk(ctx context.Context, b admin.Bulk) (admin.BulkResult, error) {
	out := admin.BulkResult{DryRun: b.DryRun}
	err := t.c.post(ctx, "/tasks/bulk", b, &out)
	return out, err
}
