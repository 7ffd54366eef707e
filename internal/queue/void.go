package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// inVain is the kind of the event. mostVoid is how many slots one event names.
const (
	inVain   = "settled in vain"
	mostVoid = 100
)

// SettledInVain records an event: an instance ran tasks to their end, but Redis did not know their claims any more. They
// may run again, or have run again already. The event names up to 100 of them that are slots.
func (q *Queue) SettledInVain(ctx context.Context, instance string, ids []string) error {
	var slots []string
	for _, id := range ids {
		if _, _, ok := task.ParseSlotID(id); ok && len(slots) < mostVoid {
			slots = append(slots, id)
		}
	}
	return q.Tell(ctx, inVain, "instance", instance, "tasks", strconv.Itoa(len(ids)), "slots", strings.Join(slots, " "))
}

// Void returns the slots whose claims were void when they were settled, as an event names them.
func (e *Event) Void() []string {
	if e.Kind != inVain {
		return nil
	}
	return strings.Fields(e.Fields["slots"])
}
