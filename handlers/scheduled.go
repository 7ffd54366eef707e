package handlers

import "github.com/onbeat/onbeat/schedule"

// Scheduled is an optional interface of a [TaskHandler] that says when the handler runs. To register such a handler is to
// schedule it, under the name of its type.
type Scheduled interface {
	Schedule() schedule.Rule
}

// WithPayload is an optional interface of a [Scheduled] handler: it returns the payload of its scheduled tasks, in any form
// that [github.com/onbeat/onbeat/task.New] takes.
type WithPayload interface {
	Payload() any
}
