package producer

import (
	"strings"

	"github.com/onbeat/onbeat/task"
)

// Names that are reserved for the dispatcher: slots (name@milliseconds), slots of a backfill, and the keys that keep a
// schedule's runs from overlapping. A caller's task with such a name would take the place of a slot, or delay it.
const (
	backfillMark = "+backfill"
	scheduleKey  = "schedule:"
)

// noticeType is the type of the tasks that send messages to the targets of notify, and begins their IDs, which anybody can foretell: a
// task of another type that has one would be in the place of the message.
const noticeType = task.Own + "notify"

// checkType refuses a type of the dispatcher's own tasks. A caller may send a message.
func checkType(typ string) error {
	if !strings.HasPrefix(typ, task.Own) || typ == noticeType {
		return nil
	}
	return &task.FieldError{Field: "type", Value: typ, Reason: "types that begin with " + task.Own + " are reserved", Hint: "begin it with something else"}
}

// errNilTask refuses a nil task, which is a bug in the caller's program.
var errNilTask = &task.FieldError{Field: "task", Reason: "is nil", Hint: "make one with task.New"}

// CheckNames refuses a caller's task that is nil or has a name that is reserved for the dispatcher.
func CheckNames(t *task.Task) error {
	if t == nil {
		return errNilTask
	}
	switch _, _, slot := task.ParseSlotID(strings.TrimSuffix(t.ID, backfillMark)); {
	case slot:
		return &task.FieldError{
			Field: "id", Value: t.ID, Reason: "looks like the ID of a schedule's slot", Hint: "onbeat gives IDs like name@number to slots: use another character than @",
		}
	case strings.HasPrefix(t.ID, task.Own) && (t.Type != noticeType || !strings.HasPrefix(t.ID, noticeType+":")):
		return &task.FieldError{
			Field: "id", Value: t.ID, Reason: "IDs that begin with " + task.Own + " are reserved", Hint: "begin it with something else",
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
