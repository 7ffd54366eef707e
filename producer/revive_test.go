package producer

import (
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A command without the configuration does not know which parts of a payload are secret. A task that it retries keeps those with which
// it was added, as long as it is of the same type.
func TestRevive_keepsWhatIsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	w.apply("s", schedule.Every(time.Hour))
	st, err := w.q.Schedule(t.Context(), "s")
	must(t, err)
	slot := w.entry("s").last.Anchor
	for typ, want := range map[string][]string{"job": {"token"}, "other": nil} {
		got := w.revival(st, &task.Task{ID: task.SlotID("s", slot), Type: typ, Schedule: "s", Slot: slot, Secret: []string{"token"}})
		if got.Task.Type != "job" || !slices.Equal(got.Task.Secret, want) {
			t.Errorf("a task of type %s becomes one of type %s, with the secrets %q", typ, got.Task.Type, got.Task.Secret)
		}
	}
}
