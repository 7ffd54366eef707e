package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// vain is the kind of the event. mostVain is how many slots one event names.
const (
	vain     = "settled in vain"
	mostVain = 100
)

// SettledInVain records an event: an instance ran tasks to their end, but Redis did not know their claims any more. They
// may run again, or have run again already. The event names up to 100 of them that are slots.
func (q *Queue) SettledInVain(ctx context.Context, instance string, ids []string) error {
	var slots []string
	for _, id := range ids {
		if _, _, ok := task.ParseSlotID(id); ok && len(slots) < mostVain {
			slots = append(slots, id)
		}
	}
	return q.Tell(ctx, vain, "instance", instance, "tasks", strconv.Itoa(len(ids)), "slots", strings.Join(slots, " "))
}

// Vain returns the slots that an event names as settled in vain.
func (e *Event) Vain() []string {
	if e.Kind != vain {
		return nil
	}
	return strings.Fields(e.Fields["slots"])
}
