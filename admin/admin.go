package admin

import (
	"context"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// Admin is what people do with a namespace. It is safe for concurrent use, from any process, whichever instance leads.
type Admin struct {
	Tasks     Tasks
	Schedules Schedules
	Instances Instances
	Activity  Activity
	Bulks     Bulks
	// Answers are for an API that serves the rest. They are nil where another process does.
	Answers Answers
}

// Of returns the admin of the namespace that a queue, a producer and a registry share. The past is where it reads what
// happened; nil is Redis alone.
func Of(q *queue.Queue, p *producer.Producer, reg *instance.Registry, before *past.Past) *Admin {
	if before == nil {
		before = past.Of(q, nil)
	}
	s := producer.NewSchedules(q, p).With(before)
	inst := &instances{q: q, reg: reg}
	t := &tasks{q: q, p: p, past: before}
	return &Admin{
		Tasks:     t,
		Schedules: &schedules{q: q, s: s, p: p},
		Instances: inst,
		Activity:  &activity{q: q, s: s, past: before, instances: inst},
		Bulks:     &bulks{q: q, tasks: t, instances: inst},
		Answers:   q,
	}
}

// List is one page of a list in JSON.
type List[T any] struct {
	Items []T `json:"items"`
	// Next is what to pass as After to read the next page. "": this page is the last.
	Next string `json:"next,omitempty"`
}

// ListOf returns a page whose items are never null in JSON.
func ListOf[T any](items []T, next string) List[T] {
	return List[T]{Items: append([]T{}, items...), Next: next}
}

// By returns a context in which changes are made in the name of a person or program, such as "ann@host". Events and
// revisions show the name.
func By(ctx context.Context, actor string) context.Context { return queue.By(ctx, actor) }
