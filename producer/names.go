package producer

import (
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Names that are reserved for the dispatcher: slots (name@milliseconds), slots of a backfill, and the keys that keep a
// schedule's runs from overlapping. A caller's task with such a name would take the place of a slot, or delay it.
const (
	backfillMark = queue.BackfillMark
	scheduleKey  = "schedule:"
)

// checkType refuses a type of the dispatcher's own tasks.
func checkType(typ string) error {
	if !strings.HasPrefix(typ, task.Own) {
		return nil
	}
	return &task.FieldError{Field: "type", Value: typ, Reason: "types that begin with " + task.Own + " are reserved", Hint: "begin it with something else"}
}

// errNilTask refuses a nil task, which is a bug in the caller's program.
var errNilTask = &task.FieldError{Field: "task", Reason: "is nil", Hint: "make one with task.New"}

// isSlot reports whether a name is the ID of a slot, or of a slot that is backfilled.
func isSlot(name string) bool {
	_, _, slot := task.ParseSlotID(strings.TrimSuffix(name, backfillMark))
	return slot
}

// IsBackfill reports whether a task's ID is that of a slot that is backfilled.
func IsBackfill(id string) bool { return strings.HasSuffix(id, backfillMark) && isSlot(id) }

// CheckNames refuses a caller's task that is nil or has a name that is reserved for the dispatcher.
func CheckNames(t *task.Task) error {
	if t == nil {
		return errNilTask
	}
	switch {
	case isSlot(t.ID) || queue.ScheduleOf(t.ID) != "":
		return &task.FieldError{
			Field: "id", Value: t.ID, Reason: "looks like the ID of a schedule's slot or trigger",
			Hint: "onbeat gives IDs like name@number to slots, and name!ID to triggers: use other characters than @ and !",
		}
	case strings.HasPrefix(t.ID, task.Own): // anybody can foretell those of messages
		return &task.FieldError{
			Field: "id", Value: t.ID, Reason: "IDs that begin with " + task.Own + " are reserved", Hint: "begin it with something else",
		}
	case isSlot(t.UniqueKey): // a backfill takes the ID of each of its slots as a unique key
		return &task.FieldError{
			Field: "unique", Value: t.UniqueKey, Reason: "looks like the ID of a schedule's slot", Hint: "onbeat gives keys like name@number to slots: use another character than @",
		}
	case strings.HasPrefix(t.UniqueKey, task.Own):
		return &task.FieldError{
			Field: "unique", Value: t.UniqueKey, Reason: "unique keys that begin with " + task.Own + " are reserved", Hint: "begin it with something else",
		}
	case strings.HasPrefix(t.Key, scheduleKey):
		return &task.FieldError{
			Field: "key", Value: t.Key, Reason: "keys that begin with " + scheduleKey + " are reserved", Hint: "begin it with something else",
		}
	case t.Schedule != "" || !t.Slot.IsZero():
		return &task.FieldError{
			Field: "schedule", Value: t.Schedule, Reason: "only the dispatcher sets it", Hint: "trigger or backfill the schedule",
		}
	}
	return checkType(t.Type)
}
