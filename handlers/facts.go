package handlers

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// slotOf returns the moment that a run is for: the slot of a scheduled task, else the due time, else when it was enqueued.
func slotOf(t *task.Task) time.Time {
	for _, at := range [...]time.Time{t.Slot, t.Due, t.Created} {
		if !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// formatSlot writes RFC 3339 in UTC, always with nine digits after the second: the width is fixed, so that it sorts as
// text.
func formatSlot(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") }
