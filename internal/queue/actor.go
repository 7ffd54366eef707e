package queue

import "context"

type actorKey struct{}

// By returns a context in which changes are made in the name of a person or program, such as "ann@host". Events and
// revisions show the name.
func By(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns the name that [By] set, or "".
func Actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}

type bulkKey struct{}

// InBulk returns a context in which cancelling, deleting and retrying a task is no event of its own. The caller changes many,
// and tells of all of them at once.
func InBulk(ctx context.Context) context.Context { return context.WithValue(ctx, bulkKey{}, true) }

// capOf returns the cap of the events to which a change of a task is added, or "" if it is no event.
func (q *Queue) capOf(ctx context.Context) any {
	if ctx.Value(bulkKey{}) != nil {
		return ""
	}
	return q.caps.Events
}
