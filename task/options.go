package task

import "time"

// An Option sets a field of a task before it is enqueued.
type Option func(*Task)

// ID sets an ID of the caller's choice: at most 256 bytes without control characters. While a task with that ID is known, a
// second one is refused as a duplicate.
func ID(id string) Option { return func(t *Task) { t.ID = id } }

// In makes the task due this long after it is enqueued, by the clock of Redis.
func In(d time.Duration) Option { return func(t *Task) { t.Delay, t.Due = d, time.Time{} } }

// At makes the task due at a time, rounded up to a whole millisecond so that it does not run early.
func At(at time.Time) Option {
	due := at.Truncate(time.Millisecond)
	if due.Before(at) {
		due = due.Add(time.Millisecond)
	}
	return func(t *Task) { t.Due, t.Delay = due, 0 }
}

// Unique refuses the task if one with the same key was enqueued within the window. A zero window means [DefaultUniqueFor].
func Unique(key string, window time.Duration) Option {
	return func(t *Task) { t.UniqueKey, t.UniqueFor = key, window }
}

// Secret marks values of the payload that commands and logs hide. A path names the fields of JSON from the outside in, with
// dots between them: card.number, headers.Authorization, items.*.token. A * is every field, or every item of a list; a number is one
// item; \. is a dot that is part of a name. Upper and lower case are the same. A path that is * or . alone is the whole payload.
// Fields below a path are secret too.
func Secret(paths ...string) Option {
	return func(t *Task) { t.Secret = append(t.Secret[:len(t.Secret):len(t.Secret)], paths...) }
}

// MaxAttempts bounds how many runs of the task are started.
func MaxAttempts(n int) Option { return func(t *Task) { t.MaxAttempts = n } }

// Retry sets the first delay between attempts and the largest; see [Backoff].
func Retry(base, limit time.Duration) Option {
	return func(t *Task) { t.Backoff = Backoff{Base: base, Cap: limit} }
}

// Timeout bounds each run.
func Timeout(d time.Duration) Option { return func(t *Task) { t.Timeout = d } }

// Queue sets the queue in which the task waits.
func Queue(name string) Option { return func(t *Task) { t.Queue = name } }

// WithPriority sets the priority of the task within its queue.
func WithPriority(p Priority) Option { return func(t *Task) { t.Priority = p } }

// Key lets at most limit tasks with the same key run at once, over all instances; the others wait their turn. Give all
// tasks with a key the same limit: while some wait, the limit of the first in line applies to all of them.
func Key(key string, limit int) Option {
	return func(t *Task) { t.Key, t.KeyLimit = key, limit }
}

// Keep sets how long the finished task stays visible; a negative duration does not keep it.
func Keep(d time.Duration) Option { return func(t *Task) { t.Keep = d } }

// Trace passes a W3C traceparent to the handler.
func Trace(traceparent string) Option { return func(t *Task) { t.Trace = traceparent } }
