package queue

import (
	"strings"
	"time"

	"github.com/onbeat/onbeat/task"
)

// ScheduleOf is the schedule of the slot, trigger or backfill that a task's ID names; "" if it names none. No caller can choose such an
// ID.
func ScheduleOf(id string) string {
	if name, rest, ok := strings.Cut(id, "!"); ok && len(rest) == len(task.NewID(time.Time{})) && task.CheckName("", name) == nil {
		return name
	}
	if i, j := strings.LastIndexByte(id, '@'), strings.LastIndexByte(id, '+'); j > i { // a mark behind the slot
		id = id[:j]
	}
	schedule, _, _ := task.ParseSlotID(id)
	return schedule
}
