package handlers

import "github.com/onbeat/onbeat/schedule"

// Scheduled is an optional interface of a [TaskHandler]: one that says when it runs is scheduled by being registered,
// under the name of its type.
type Scheduled interface {
	Schedule() schedule.Rule
}

// WithPayload is an optional interface of a [Scheduled] handler: the payload of its scheduled tasks, in any form
// that [github.com/onbeat/onbeat/task.New] takes.
type WithPayload interface {
	Payload() any
}
