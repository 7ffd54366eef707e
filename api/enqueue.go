package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/strictjson"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// maxBatch is the most tasks of one request, and maxRefused is how many refused tasks, or parameters, it names.
const (
	maxBatch   = 10_000
	maxRefused = 100
)

// enqueueBody is one task, or a batch of them.
type enqueueBody struct{}

// Schema is read by huma.
func (enqueueBody) Schema(r huma.Registry) *huma.Schema {
	most := maxBatch
	one := r.Schema(typeOf[admin.TaskSpec](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{one, {
		Type: huma.TypeObject, Required: []string{"tasks"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{"tasks": {Type: huma.TypeArray, Items: one, MaxItems: &most}},
	}}}
}

// enqueuedOut is what became of one task, or of each one of a batch.
type enqueuedOut struct {
	Status   int
	Location string `header:"Location"`
	Body     EnqueueReply
}

// EnqueueReply is what became of one task, or of each one of a batch.
type EnqueueReply struct {
	one  *admin.Enqueued
	many []admin.Enqueued
}

// MarshalJSON writes an object for one task, and a list of items for a batch.
func (r EnqueueReply) MarshalJSON() ([]byte, error) {
	if r.one != nil {
		return json.Marshal(r.one)
	}
	return json.Marshal(admin.ListOf(r.many, ""))
}

// Schema is read by huma.
func (EnqueueReply) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(typeOf[admin.Enqueued](), true, "")
}

type enqueueIn struct {
	Trace      string `header:"traceparent" doc:"The span that the tasks continue, unless they say their own."`
	TraceState string `header:"tracestate"`
}

func (s *Server) enqueue(ctx context.Context, in *enqueueIn) (*enqueuedOut, error) {
	batch, isBatch, err := batchOf(bodyOf(ctx))
	if err != nil {
		return nil, err
	}
	if isBatch {
		return s.enqueueBatch(ctx, in, batch)
	}
	if err := s.checkSize(bodyOf(ctx)); err != nil {
		return nil, located(err, "")
	}
	var spec admin.TaskSpec
	if err := read(ctx, &spec, "task"); err != nil {
		return nil, err
	}
	t, err := s.taskOf(ctx, in, &spec)
	if err != nil {
		return nil, located(err, "")
	}
	done, err := s.admin.Tasks.Enqueue(ctx, []*task.Task{t})
	if err != nil {
		return nil, located(err, "")
	}
	e := done[0]
	if e.Err != nil {
		return nil, located(e.Err, "")
	}
	return &enqueuedOut{http.StatusCreated, pathOf("/v1/tasks", e.ID), EnqueueReply{one: &e}}, nil
}

// checkSize refuses a task that is too large however it is written, before its JSON costs time.
func (s *Server) checkSize(raw []byte) error {
	limit := cmp.Or(s.cfg.Limits.Payload, task.DefaultPayloadLimit)
	if (len(raw)-64<<10)/2 <= limit {
		return nil
	}
	return &task.FieldError{Field: "payload", Reason: fmt.Sprintf("too large: the task has %d bytes, and the limit is %d", len(raw), limit)}
}

// batchOf returns the tasks of {"tasks": [...]}, as they are written in the body. A body without such a list is one task. Nothing is read
// into memory yet: each task is looked at for its size first.
func batchOf(body []byte) (batch [][]byte, is bool, err error) {
	if !json.Valid(body) {
		return nil, false, nil
	}
	batch, rest := strictjson.List(body, "tasks", maxBatch)
	switch {
	case rest == nil:
		return nil, false, nil
	case len(batch) > maxBatch:
		return nil, true, located(&task.FieldError{Field: "tasks", Reason: "too many", Hint: fmt.Sprintf("1 to %d tasks", maxBatch)}, "")
	}
	var b struct {
		Tasks []struct{} `json:"tasks"`
	}
	err = strictly(rest, &b, "batch")
	if err == nil && len(batch) == 0 {
		err = &task.FieldError{Field: "tasks", Value: "0", Reason: "out of range", Hint: fmt.Sprintf("1 to %d tasks", maxBatch)}
	}
	return batch, true, located(err, "")
}

// inBatch names a task of a batch, from 0.
func inBatch(i int) string { return "tasks[" + strconv.Itoa(i) + "]" }

// enqueueBatch adds tasks, after it has checked each of them. Redis takes none if one is refused.
func (s *Server) enqueueBatch(ctx context.Context, in *enqueueIn, batch [][]byte) (*enqueuedOut, error) {
	list := make([]*task.Task, len(batch))
	var refused *Problem
	bad := 0
	for i, raw := range batch {
		var spec admin.TaskSpec
		err := s.checkSize(raw)
		if err == nil {
			err = strictly(raw, &spec, "task")
		}
		if err == nil {
			list[i], err = s.taskOf(ctx, in, &spec)
		}
		if err == nil {
			continue
		}
		p, _ := problemOf(located(err, inBatch(i)))
		switch {
		case refused == nil:
			refused = p
		case p.Type == refused.Type:
			refused.Detail += "; " + p.Detail
			refused.Errors = append(refused.Errors, p.Errors...)
		}
		if bad++; bad == maxRefused {
			break
		}
	}
	if refused != nil {
		return nil, refused
	}
	done, err := s.admin.Tasks.Enqueue(ctx, list)
	if err != nil && len(done) < len(list) { // else it is that of some partitions, and the answer says which tasks are theirs
		var one *producer.BatchError
		if errors.As(err, &one) && len(done) == 0 { // no task is added, as if it were refused above
			return nil, located(one.Err, inBatch(one.Index))
		}
		if p, known := problemOf(err); known && len(list) > 1 {
			p.Detail += fmt.Sprintf("; %d of the %d tasks are answered for: with an id or a unique key each, the batch can be sent again", len(done), len(list))
			return nil, p
		}
		return nil, err
	}
	return &enqueuedOut{http.StatusOK, "", EnqueueReply{many: done}}, nil
}

// taskOf makes a task that the sender may enqueue.
func (s *Server) taskOf(ctx context.Context, in *enqueueIn, spec *admin.TaskSpec) (*task.Task, error) {
	if sc, ok := tracing.Parse(in.Trace, in.TraceState); ok && spec.Trace == "" {
		spec.Trace, spec.TraceState = tracing.Traceparent(sc), tracing.State(sc)
	}
	t, err := spec.Task(s.cfg.Limits)
	if err != nil {
		return nil, err
	}
	who := identityOf(ctx)
	if err := mayEnqueue(&who, t.Queue, t.Type); err != nil {
		return nil, err
	}
	if s.cfg.CheckPayload != nil {
		return t, s.cfg.CheckPayload(t)
	}
	return t, nil
}

// mayEnqueue refuses a queue or a type that is not among those of the token.
func mayEnqueue(who *Identity, queueName, typ string) error {
	if queueName == "" {
		queueName = task.DefaultQueue
	}
	for _, v := range []struct {
		noun, name string
		allowed    []string
	}{{"queue", queueName, who.Queues}, {"type", typ, who.Types}} {
		if len(v.allowed) > 0 && !slices.Contains(v.allowed, v.name) {
			return &refusal{http.StatusForbidden, "forbidden", fmt.Sprintf("%s may not enqueue tasks of the %s %q", whom(who), v.noun, v.name), ""}
		}
	}
	return nil
}
