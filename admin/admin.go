package admin

import (
	"context"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/redis/go-redis/v9"
)

// Admin is what people do with a namespace. It is safe for concurrent use, from any process, whichever instance leads.
type Admin struct {
	Tasks     Tasks
	Schedules Schedules
	Instances Instances
	Activity  Activity
	Bulks     Bulks
	// Answers and Sessions are for an API that serves the rest. They are nil where another process does.
	Answers  Answers
	Sessions Sessions
}

// New returns the admin of a namespace. The producer adds the tasks that people ask for. If kept is not nil, the admin reads in that
// archive what happened longer ago than Redis knows. New does not talk to Redis.
func New(rdb redis.UniversalClient, namespace string, p *producer.Producer, kept *archive.Source) (*Admin, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	reg, err := instance.NewRegistry(rdb, namespace)
	if err != nil {
		return nil, err
	}
	auditor, err := audit.New(rdb, namespace, kept)
	if err != nil {
		return nil, err
	}
	before := past.Of(q, kept)
	s := producer.NewSchedules(p, kept)
	inst := &instances{q: q, reg: reg}
	t := &tasks{q: q, p: p, s: s, past: before}
	return &Admin{
		Tasks:     t,
		Schedules: &schedules{q: q, s: s, p: p, n: inst, auditor: auditor},
		Instances: inst,
		Activity:  &activity{q: q, s: s, past: before, auditor: auditor, instances: inst, tasks: t},
		Bulks:     &bulks{q: q, tasks: t, instances: inst},
		Answers:   answers{q},
		Sessions:  q,
	}, nil
}

// List is one page of a list in JSON.
type List[T any] struct {
	Items []T `json:"items"`
	// Next is what to pass as After to read the next page. "": this page is the last.
	Next string `json:"next,omitempty"`
	// CouldNotAsk are the sources that did not answer, such as partitions: the list lacks what they know.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// ListOf returns a page whose items are never null in JSON.
func ListOf[T any](items []T, next string) List[T] {
	return List[T]{Items: append([]T{}, items...), Next: next}
}

// By returns a context in which changes are made in the name of a person or program, such as "ann@host". Events and
// revisions show the name.
func By(ctx context.Context, actor string) context.Context { return queue.By(ctx, actor) }
