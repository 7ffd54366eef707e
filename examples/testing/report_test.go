package report

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/task"
)

// books are closed 25 minutes past two, and note when they are asked.
type books struct {
	mu    sync.Mutex
	asked []string
}

func (b *books) Closed(day time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, time.Now().UTC().Format("15:04"))
	return time.Now().After(day.AddDate(0, 0, 1).Add(25 * time.Minute))
}

// One run, with the slot and the attempt that the test chooses.
func TestBuild(t *testing.T) {
	t.Parallel()
	night := time.Now().UTC().Truncate(24 * time.Hour).Add(2 * time.Hour)
	run := &task.Task{Type: "report", Schedule: "nightly", Slot: night.AddDate(0, 0, 2)}
	if out := onbeattest.Run(t, build(&books{}), run); out.State != onbeattest.Retried || out.After != 10*time.Minute || !errors.Is(out.Err, errOpen) {
		t.Errorf("open books: %+v", out)
	}
	run.Slot, run.Attempt = time.Date(2020, 3, 1, 2, 0, 0, 0, time.UTC), 2
	if out := onbeattest.Run(t, build(&books{}), run); out.State != onbeattest.Done || out.Output != "report of 2020-02-29, attempt 2" {
		t.Errorf("closed books: %+v", out)
	}
}

// A night of the schedule, in a moment: the dispatcher, its Redis and the books go by the clock of the bubble.
func TestNight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &books{}
		d := onbeattest.New(t, onbeat.Config{})
		if err := Register(d, b); err != nil {
			t.Fatal(err)
		}
		onbeattest.Start(t, d)
		time.Sleep(3 * time.Hour) // a bubble begins at midnight UTC
		synctest.Wait()
		if want := []string{"02:00", "02:10", "02:20", "02:30"}; !slices.Equal(b.asked, want) {
			t.Errorf("it ran at %v, want %v", b.asked, want)
		}
	})
}
