package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
)

// Each trouble is told of once as long as it lasts, whichever instance leads, and again only after it was over for a window.
func TestTrouble_isToldOnceAsLongAsItLasts(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]Trouble{
		"all workers": {Topic: Hung, Text: "all 4 workers are busy"},
		"a schedule":  {Topic: Hung, Schedule: "a", Text: "a run has lasted 5m"},
		"a type":      {Topic: Unhandled, Type: "htpp", Text: "no instance handles it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newReign(t, Target{Name: "ops"})
			for i, step := range []struct {
				there bool
				told  int64
			}{{true, 1}, {true, 0}, {true, 0}, {false, 0}, {true, 0}, {false, 0}, {false, 0}, {true, 1}, {true, 0}} {
				var list []Trouble
				if step.there {
					x.Since = g.at.Add(time.Duration(i) * time.Second) // a longer run may take its place
					list = []Trouble{x}
				}
				if got := g.window(list...)[x.Topic]; got != step.told {
					t.Errorf("window %d told of %d, want %d", i, got, step.told)
				}
			}
		})
	}
}

// Troubles of one topic do not stand in for each other.
func TestTrouble_eachIsToldOf(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops"})
	all, a, b := Trouble{Topic: Hung}, Trouble{Topic: Hung, Schedule: "a"}, Trouble{Topic: Hung, Type: "a"}
	if got := g.window(all)[Hung]; got != 1 {
		t.Errorf("told of %d", got)
	}
	if got := g.window(all, a, b)[Hung]; got != 2 {
		t.Errorf("told of %d more, want 2", got)
	}
}

// Schedules that fail, and of which there are more than are followed, hide no trouble, whichever instance leads.
func TestTrouble_isToldHoweverManySchedulesFail(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops"})
	for i := range mostSubjects + 10 {
		g.run(fmt.Sprintf("s%04d@1000", i), history.Failed, "")
	}
	x := Trouble{Topic: Hung, Schedule: "a"}
	for i, want := range []int64{1, 0} {
		g.r.judgeArchive(g.at.Add(time.Minute), 1000, behindFor, behindFor)
		if told := g.window(x); told[Hung] != want || told[ArchiveBehind] != want {
			t.Errorf("window %d told %v, want %d of the trouble and of the archive", i, told, want)
		}
		if n := len(g.r.subjects); n != mostSubjects+2 {
			t.Errorf("the next leader follows %d, want %d and the two troubles", n, mostSubjects)
		}
	}
}

// Each loss is told of once, though a status tells of it for a day.
func TestTrouble_eachLossIsToldOnce(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops"})
	first := Trouble{Topic: Lost, Since: g.at, Text: "Redis came back empty"}
	var sum int64
	for range 24 * 60 {
		sum += g.window(first)[Lost]
	}
	second := Trouble{Topic: Lost, Since: g.at, Text: "Redis came back empty"}
	for range 10 {
		sum += g.window(second)[Lost]
	}
	if sum != 2 {
		t.Errorf("told of %d losses, want 2", sum)
	}
}

// A schedule that stays paused is told of once a day.
func TestTrouble_pausedIsToldOnceADay(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops"})
	var at []time.Duration
	for range 2*24*60 + 10 {
		if g.window(Trouble{Topic: Paused, Schedule: "a"})[Paused] > 0 {
			at = append(at, g.at.Sub(start)-time.Minute)
		}
	}
	if len(at) != 3 || at[1] != pausedEvery || at[2] != 2*pausedEvery {
		t.Errorf("told at %v", at)
	}
}

// Workers that hang hold up all schedules, so targets of some schedules hear of them too; of other schedules they do not hear.
func TestTrouble_ofAllWorkersIsForEachTarget(t *testing.T) {
	t.Parallel()
	few := Target{Name: "few", Schedules: []string{"billing.*"}}.withDefaults()
	for _, tt := range []struct {
		topic    Topic
		schedule string
		want     bool
	}{
		{Hung, "", true}, {Hung, "billing.run", true}, {Hung, "other", false}, {Unhandled, "", false}, {Retired, "billing.run", true},
		{Paused, "billing.run", true}, {Lost, "", false},
	} {
		if got := few.hears(tt.topic, tt.schedule); got != tt.want {
			t.Errorf("%s of %q: %v", tt.topic, tt.schedule, got)
		}
	}
}

// A release that no longer declares a schedule is told of once each time.
func TestRound_tellsOfARetiredSchedule(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops"})
	for range 2 {
		g.event("schedule retired", "schedule", "nightly", "release", "v2")
		n := g.r.groups[groupKey{"ops", Retired}]
		if n == nil || n.notices[0].Schedule != "nightly" {
			t.Fatalf("%+v", n)
		}
		for i, want := range []int64{1, 0} {
			if got := g.window()[Retired]; got != want {
				t.Errorf("window %d: told of %d", i, got)
			}
		}
	}
}
