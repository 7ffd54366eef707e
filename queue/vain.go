package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// vain is the kind of the event, and mostVain how many slots one names.
const (
	vain     = "settled in vain"
	mostVain = 100
)

// SettledInVain notes, in an event, that an instance ran tasks to their end whose claims Redis did not know any more: they may
// run once more, or have. Up to 100 that are slots are named.
func (q *Queue) SettledInVain(ctx context.Context, instance string, ids []string) error {
	var slots []string
	for _, id := range ids {
		if _, _, ok := task.ParseSlotID(id); ok && len(slots) < mostVain {
			slots = append(slots, id)
		}
	}
	return q.Tell(ctx, vain, "instance", instance, "tasks", strconv.Itoa(len(ids)), "slots", strings.Join(slots, " "))
}

// Vain are the slots that an event names as settled in vain.
func (e *Event) Vain() []string {
	if e.Kind != vain {
		return nil
	}
	return strings.Fields(e.Fields["slots"])
}
