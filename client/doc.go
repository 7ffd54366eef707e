// Package client reaches a namespace through the HTTP API of onbeat serve, and not through Redis. [New] returns the same
// [admin.Admin] that a dispatcher has: the same calls, shapes and errors.
//
// Enqueue gives each task that has no ID one, as a producer does: a caller that gets no answer can enqueue the same tasks again.
// In a namespace that is split, an ID must lie where the key, the unique key or the limited type of its task does, so the API makes
// the IDs of a list with such tasks: the list has no IDs until it is added.
//
// Errors match the same values too: [task.ErrNotFound], a [*task.FieldError], an [*admin.StateError], or
// [task.ErrUnreachable] where Redis or the API is away. Besides these there are [ErrToken] and
// [ErrStrange].
package client
