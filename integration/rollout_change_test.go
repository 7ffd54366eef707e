package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// A release removes a schedule, adds one and changes an interval. Each change takes effect at one moment, which the events
// name. The schedule with the new interval keeps its anchor, and the schedules that stay miss no beat.
func TestRollout_aReleaseThatChangesItsSchedules(t *testing.T) {
	const turned = 250 * time.Millisecond
	f := newFleet(t, "")
	old := f.release("v1", f.Beat("goes", fleetEvery), f.Beat("turns", fleetEvery)).up(1)
	f.goesOn(10)
	next := f.release("v2", f.Beat("comes", fleetEvery), f.Beat("turns", turned)).rollout(old)
	f.goesOn(testredis.Size(20, 100))
	f.ends(next)

	f.wantReigns("v1", "v2")
	f.wantGone("goes")
	f.wantNew("comes")
	agree := []string{"goes", "comes"}
	if f.wantTurned("turns", fleetEvery, turned) {
		agree = append(agree, "turns")
	}
	f.WantAuditAgrees(agree...)
	f.wantSteady("a schedule removed, one added, one changed", 2*fleetEvery)
}

// wantGone fails unless a schedule beat until it was retired, and no slot after that ran.
func (f *fleet) wantGone(name string) {
	f.Helper()
	retired := f.happened("schedule retired", name)
	list := f.Of(name)
	f.WantWhole(name, f.JudgeOne(name, list, fleetEvery, retired.Add(-fleetEvery)))
	for _, a := range list {
		if a.Slot.After(retired) {
			f.Errorf("%s ran, of a slot %s after it was retired", a.ID, a.Slot.Sub(retired))
		}
	}
}

// scripted is how much later than its change an event may be dated: Redis dates the event when it is written, and a change has the
// time that its script read when it began. No script holds Redis for longer.
const scripted = 20 * time.Millisecond

// wantNew fails unless a schedule has beaten since it was made, by the new release alone.
func (f *fleet) wantNew(name string) {
	f.Helper()
	made := f.happened("schedule made", name)
	list := f.Of(name)
	f.WantWhole(name, f.JudgeOne(name, list, fleetEvery, f.ended.Add(-2*fleetEvery)))
	for _, a := range list {
		if a.Slot.Before(made.Add(-scripted)) || a.Release != "v2" {
			f.Errorf("%s ran on %s, %s after it was made", a.ID, a.Release, a.Slot.Sub(made))
		}
	}
	if first := slices.MinFunc(list, bySlotTime); first.Slot.Sub(made) > fleetEvery {
		f.Errorf("%s: its first slot is %s after it was made", name, first.Slot.Sub(made))
	}
}

// wantTurned fails unless a schedule beat on one grid until it was changed, then on another with the same anchor. It reports whether each slot of
// the new grid came after the event: the audit does not expect one that came while the script ran.
func (f *fleet) wantTurned(name string, before, after time.Duration) (apart bool) {
	f.Helper()
	changed := f.happened("schedule changed", name)
	was := f.Of(name)
	slices.SortFunc(was, bySlotTime)
	i := slices.IndexFunc(was, func(a trial.Arrival) bool {
		old := a.Slot.Sub(was[0].Slot)%before == 0
		return a.Slot.After(changed) || a.Slot.After(changed.Add(-scripted)) && !old
	})
	if i <= 0 {
		f.Fatalf("%s: %d slots arrived, %d of them before the change", name, len(was), i)
	}
	was, is := was[:i], was[i:]
	f.WantWhole(name+" as it was", f.JudgeOne(name, was, before, changed.Add(-before)))
	f.WantWhole(name+" as it is", f.JudgeOne(name, is, after, f.ended.Add(-2*after)))
	if off := is[0].Slot.Sub(was[0].Slot) % after; off != 0 {
		f.Errorf("%s: the new grid is %s off its anchor", name, off)
	}
	if wait := is[0].Slot.Sub(changed); wait > after {
		f.Errorf("%s: its first slot is %s after the change, want %s at most", name, wait, after)
	}
	return is[0].Slot.After(changed)
}

func bySlotTime(a, b trial.Arrival) int { return a.Slot.Compare(b.Slot) }

// happened returns when a schedule had an event. There must be exactly one.
func (f *fleet) happened(kind, name string) time.Time {
	f.Helper()
	list := slices.DeleteFunc(f.events(kind), func(e event) bool { return e.Fields["schedule"] != name })
	if len(list) != 1 {
		f.Fatalf("%d times %q of %s, want it once", len(list), kind, name)
	}
	return list[0].At
}

// A release drops a handler whose tasks are due. The tasks wait without using an attempt, and onbeat doctor reports them,
// until a release has the handler again. All other tasks go on.
func TestRollout_aReleaseThatDropsAHandlerWithWork(t *testing.T) {
	const jobs = 5
	f := newFleet(t, "consume: release\n")
	effects := filepath.Join(f.Dir, "effects")
	able := func(version string) *release {
		r := f.release(version)
		r.args = []string{"--allow-exec"}
		return r
	}
	old := able("v1").up(1)
	for i := range jobs {
		f.Must("enqueue", "exec", "--id", fmt.Sprintf("job-%d", i), "--in", "8s",
			"--payload", fmt.Sprintf(`{"command":["/bin/sh","-c","echo %d >>%s"]}`, i, effects))
	}
	without := f.release("v2").rollout(old)
	f.goesOn(90) // past the tasks' due time
	reported := fmt.Sprintf("%d of type exec", jobs)
	testredis.Eventually(t, time.Minute, func() bool {
		_, out, _ := f.Try("doctor", "--json")
		return contains(out, reported)
	}, "the doctor does not say: %s", reported)
	f.wantJobs(jobs, `"waiting"`, 0)
	if text, err := os.ReadFile(effects); err == nil {
		t.Errorf("something ran without the handler: %s", text)
	}

	with := able("v3").rollout(without)
	testredis.Eventually(t, 20*time.Second, func() bool {
		text, err := os.ReadFile(effects)
		return err == nil && strings.Count(string(text), "\n") >= jobs
	}, "the tasks do not run")
	f.goesOn(5)
	f.ends(with)
	f.wantJobs(jobs, `"done"`, 1)
	if text, err := os.ReadFile(effects); err != nil || strings.Count(string(text), "\n") != jobs {
		t.Errorf("the effects of %d tasks: %q, %v", jobs, text, err)
	}
	f.wantReigns("v1", "v2", "v3")
	f.wantSteady("a handler dropped with tasks due", 2*fleetEvery)
}

// wantJobs fails unless every job is in a state, after so many attempts.
func (f *fleet) wantJobs(jobs int, state string, attempts int) {
	f.Helper()
	for i := range jobs {
		text := strings.ReplaceAll(f.Must("tasks", "show", fmt.Sprintf("job-%d", i), "--json"), " ", "")
		if !contains(text, `"state":`+state) || !contains(text, fmt.Sprintf(`"attempts":%d,`, attempts)) {
			f.Errorf("job-%d is not %s after %d attempts: %s", i, state, attempts, text)
		}
	}
}
