package task

import "time"

// An Option shapes a task before it is enqueued.
type Option func(*Task)

// ID gives the task an ID of the caller's own: at most 256 bytes without control characters. The same ID again is
// refused as a duplicate for as long as the task is known.
func ID(id string) Option { return func(t *Task) { t.ID = id } }

// In makes it due this long after it is enqueued, by the clock of Redis.
func In(d time.Duration) Option { return func(t *Task) { t.Delay, t.Due = d, time.Time{} } }

// At makes it due at a moment, rounded up to a whole millisecond so that it does not run early.
func At(at time.Time) Option {
	due := at.Truncate(time.Millisecond)
	if due.Before(at) {
		due = due.Add(time.Millisecond)
	}
	return func(t *Task) { t.Due, t.Delay = due, 0 }
}

// Unique refuses the task if one with the same key was enqueued within the window. Zero: [DefaultUniqueFor].
func Unique(key string, window time.Duration) Option {
	return func(t *Task) { t.UniqueKey, t.UniqueFor = key, window }
}

// MaxAttempts bounds how many runs are started.
func MaxAttempts(n int) Option { return func(t *Task) { t.MaxAttempts = n } }

// Retry sets the first delay between attempts and the largest; see [Backoff].
func Retry(base, limit time.Duration) Option {
	return func(t *Task) { t.Backoff = Backoff{Base: base, Cap: limit} }
}

// Timeout bounds one run.
func Timeout(d time.Duration) Option { return func(t *Task) { t.Timeout = d } }

// Queue names the queue it waits in.
func Queue(name string) Option { return func(t *Task) { t.Queue = name } }

// WithPriority orders it within its queue.
func WithPriority(p Priority) Option { return func(t *Task) { t.Priority = p } }

// Key lets at most limit tasks of the same key run at once, over all instances; the others wait their turn. Give all tasks
// of a key the same limit: while some wait, the limit of the first in line counts for all of them.
func Key(key string, limit int) Option {
	return func(t *Task) { t.Key, t.KeyLimit = key, limit }
}

// Keep is how long the finished task stays visible; negative: not at all.
func Keep(d time.Duration) Option { return func(t *Task) { t.Keep = d } }

// Trace carries a W3C traceparent to the handler.
func Trace(traceparent string) Option { return func(t *Task) { t.Trace = traceparent } }
