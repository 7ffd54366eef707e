package producer

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/schedule"
)

// However long calls take, the leader does not wake to find that it is too early, and wake again at once.
func TestWait_isNotInVain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.apply("s", schedule.Every(1730*time.Millisecond))
		tn := w.lead("one", "v1", nil)
		must(t, tn.takeStock(t.Context()))
		asked := time.Now()
		time.Sleep(300 * time.Millisecond)
		tn.clock = store.Clock{}
		tn.clock.Set(asked, time.Now(), w.now())
		for range 30 {
			must(t, tn.push(t.Context()))
			d := tn.wait()
			if d == 0 {
				t.Fatalf("it has nothing to push, and wakes at once (slots up to %v)", tn.entries["s"].last.Slot)
			}
			time.Sleep(d)
		}
	})
}
