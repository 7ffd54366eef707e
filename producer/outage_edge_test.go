package producer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/testredis"
)

// bubble is a world in virtual time, in which a call takes none.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newWorld(t, testredis.Mini(t).Client))
	})
}

// A schedule that is new to a Redis where nobody led has its first slot in the millisecond in which the term began.
func TestOutage_aSlotOfTheTermsFirstMillisecondIsNotMissed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		time.Sleep(700 * time.Microsecond)
		tn := w.lead("one", "v1", func() []Schedule {
			return []Schedule{{Name: "s", Task: "job", Rule: schedule.Rule{Every: time.Minute, Missed: schedule.MissedSkip}}}
		})
		must(t, tn.takeStock(t.Context()))
		must(t, tn.push(t.Context()))
		if pushed, noted := w.account("s"); pushed != 1 || noted != 0 {
			t.Errorf("%d pushed, %d noted; want slot zero pushed", pushed, noted)
		}
	})
}
