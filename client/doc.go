// Package client reaches a namespace through the HTTP API of onbeat serve, and not through Redis. [New] returns the same
// [admin.Admin] that a dispatcher has: the same calls, shapes and errors.
//
// Errors match the same values too: [task.ErrNotFound], a [*task.FieldError], an [*admin.StateError], or
// [task.ErrUnreachable] where Redis or the API is away. Besides these there are [ErrToken] and
// [ErrStrange].
package client
