package producer

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
)

// A caller who could choose the ID of a slot or a trigger would speak for the schedule: its deaths and its heartbeats are told by these IDs.
func TestCheckNames_refusesTheIDsOfSchedules(t *testing.T) {
	t.Parallel()
	for id, free := range map[string]bool{
		"nightly@1700000000000": false, "nightly@1700000000000+backfill": false, "nightly@1700000000000+bar": false,
		"nightly!" + task.NewID(time.Now()): false, "nightly!soon": true, "user@example": true, "a+b": true, "order-1": true,
	} {
		if err := CheckNames(task.New("job", nil, task.ID(id))); (err == nil) != free || err != nil && !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
