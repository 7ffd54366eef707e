package audit

import (
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

func TestWindows_haveTheLastTwoSlots(t *testing.T) {
	t.Parallel()
	now := at(10 * 24 * 3600)
	each := func(name string, d time.Duration) producer.Status {
		return producer.Status{Schedule: producer.Schedule{Name: name, Rule: schedule.Every(d)}, Anchor: t0.Add(time.Minute), Next: now.Add(time.Second)}
	}
	ended := each("ended", time.Second)
	ended.Next, ended.Last = time.Time{}, t0.Add(time.Hour+time.Minute)
	list := []producer.Status{each("second", time.Second), each("nightly", 24*time.Hour), each("twice", 12*time.Hour), each("weekly", 7*24*time.Hour), ended}
	of := func(opts Options, only map[string]bool) map[string]time.Time {
		a := &auditor{opts: opts, only: only, listed: list, now: now, to: now, from: now.Add(-time.Hour)}
		from := map[string]time.Time{}
		for _, part := range a.windows() {
			part.known = map[string]*input{}
			for i := range part.listed {
				if name := part.listed[i].Schedule.Name; part.wanted(name) {
					if _, twice := from[name]; twice {
						t.Errorf("%s is judged twice", name)
					}
					if from[name] = part.input(name).From; from[name].Before(part.from) {
						t.Errorf("%s begins before the history that is read", name)
					}
				}
			}
		}
		return from
	}
	last := now.Add(-24*time.Hour + time.Minute) // the nightly one ran at one minute past, nearly a day ago
	for name, want := range map[string]time.Time{
		"second": now.Add(-time.Hour), "nightly": last.Add(-24 * time.Hour), "twice": now.Add(-24*time.Hour + time.Minute),
		"weekly": t0.Add(time.Minute), "ended": ended.Last.Add(-time.Second),
	} {
		if got := of(Options{}, nil)[name]; !got.Equal(want) {
			t.Errorf("%s from %v, want %v", name, got, want)
		}
		if got := of(Options{Since: time.Hour}, nil)[name]; !got.Equal(now.Add(-time.Hour)) {
			t.Errorf("%s from %v, not an hour ago as asked", name, got)
		}
	}
	if got := of(Options{}, setOf([]string{"nightly"})); len(got) != 1 || !got["nightly"].Equal(last.Add(-24*time.Hour)) {
		t.Errorf("%v", got)
	}
	if unknown := (&auditor{only: setOf([]string{"gone"}), now: now, from: now.Add(-time.Hour)}).windows(); len(unknown) != 1 || !slices.Contains([]bool{unknown[0].wanted("gone")}, true) {
		t.Errorf("%+v", unknown)
	}
}
