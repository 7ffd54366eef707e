package producer

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// bubble is a world in virtual time, in which a call takes none.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newWorld(t, testredis.Mini(t).Client))
	})
}

// In a Redis without a leader so far, the first slot of a new schedule is in the millisecond in which the term began.
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

// Before the first leader opens the gate, another follows it: slots since the first one led are late, and not missed.
func TestOutage_whoFollowsBeforeTheGateOpensMissesNothingSince(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.apply("s", schedule.Rule{Every: 100 * time.Millisecond, Missed: schedule.MissedSkip})
		time.Sleep(time.Second)
		led := w.now()
		w.lead("one", "v1", nil)
		time.Sleep(250 * time.Millisecond)
		w.lead("two", "v2", nil)
		time.Sleep(250 * time.Millisecond)
		tn := w.lead("three", "v3", nil)
		must(t, tn.takeStock(t.Context()))
		must(t, tn.push(t.Context()))
		pushed := w.pushed("s")
		for ms := range pushed {
			if ms < led.UnixMilli() {
				t.Errorf("slot %d was pushed: nobody led then", ms)
			}
		}
		if n := len(pushed); n < 8 {
			t.Errorf("%d slots were pushed, of 5 since somebody led and 4 ahead", n)
		}
		w.account("s")
	})
}

// Leaders follow each other for an hour, and none comes to open the gate: slots that are older than the horizon are missed.
func TestOutage_leadersThatNeverOpenTheGateForgiveNoMoreThanTheHorizon(t *testing.T) {
	t.Parallel()
	for _, policy := range []schedule.Missed{schedule.MissedSkip, schedule.MissedOnce} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				w.apply("s", schedule.Rule{Every: time.Second, Missed: policy})
				for i := range 72 {
					w.lead("dead"+strconv.Itoa(i), "v1", nil)
					time.Sleep(50 * time.Second)
				}
				tn := w.lead("alive", "v1", nil)
				must(t, tn.takeStock(t.Context()))
				must(t, tn.push(t.Context()))
				if n := len(w.pushed("s")); n > 5 {
					t.Errorf("%d slots of the hour run", n)
				}
				w.account("s")
			})
		})
	}
}

// Slots that an outage dropped did not run: the schedule has them yet, also if all had been pushed ahead.
func TestOutage_whatItDropsIsNoRun(t *testing.T) {
	t.Parallel()
	for _, policy := range []schedule.Missed{schedule.MissedSkip, schedule.MissedOnce} {
		for _, gap := range []time.Duration{2500 * time.Millisecond, 20 * time.Second} {
			t.Run(string(policy)+" "+gap.String(), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, w *world) {
					ctx := t.Context()
					w.apply("s", schedule.Rule{Every: time.Second, Missed: policy, MaxRuns: 5})
					one := w.lead("one", "v1", nil)
					one.cfg.Horizon, one.open = 10*time.Second, true
					must(t, one.takeStock(ctx))
					must(t, one.push(ctx))
					if n := len(w.pushed("s")); n != 5 {
						t.Fatalf("%d pushed", n)
					}
					_, err := w.reg.Deregister(ctx, "one", one.term.Gen)
					must(t, err)
					time.Sleep(gap)
					two := w.lead("two", "v1", nil)
					two.cfg.Horizon = 10 * time.Second
					must(t, two.takeStock(ctx))
					must(t, two.push(ctx))
					if pushed, noted := w.account("s"); pushed != 5 || noted == 0 {
						t.Errorf("%d are to run, %d were dropped; want 5 and some", pushed, noted)
					}
					late := 0
					for ms := range w.pushed("s") {
						if ms < two.began.UnixMilli() {
							late++
						}
					}
					if want := map[schedule.Missed]int{schedule.MissedOnce: 1}[policy]; late != want {
						t.Errorf("%d missed slots run, want %d", late, want)
					}
				})
			})
		}
	}
}
