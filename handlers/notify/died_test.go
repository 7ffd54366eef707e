package notify

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// reign is a story in which another leader takes over after each window: it knows only what was noted.
type reign struct {
	*story
	noted   map[string]string
	targets []Target
	died    []queue.Death
}

func newReign(t *testing.T, targets ...Target) *reign {
	g := &reign{story: newStory(t, targets...), noted: map[string]string{}, targets: targets}
	g.noted[positionName(time.Minute)] = g.r.place.encode()
	g.r.saved = g.noted[positionName(time.Minute)]
	return g
}

func (g *reign) die(schedule string) {
	id := fmt.Sprintf("%s@%d", schedule, g.at.UnixMilli()+int64(len(g.died)))
	g.died = append(g.died, queue.Death{ID: id, At: g.at})
	g.run(id, history.Dead, "refused")
}

// window ends the window as a notifier does, and returns how much it told of each topic.
func (g *reign) window(troubles ...Trouble) map[Topic]int64 {
	g.Helper()
	g.at = g.at.Add(time.Minute)
	g.r.takeDied(g.died, g.at)
	g.died = nil
	g.r.settle(g.at)
	g.r.judgeTroubles(g.at, troubles)
	told := map[Topic]int64{}
	for k, x := range g.r.groups {
		told[k.topic] += x.count
	}
	c := g.r.change(g.at)
	maps.Copy(g.noted, c.Set)
	for _, name := range c.Remove {
		delete(g.noted, name)
	}
	n := &Notifier{}
	for _, one := range g.targets {
		n.cfg.Targets = append(n.cfg.Targets, one.withDefaults())
	}
	rounds, k := n.rounds(), &known{messages: map[string]string{}}
	for name, text := range g.noted {
		k.take(name, text, rounds, g.noted, g.at)
	}
	g.r = rounds[time.Minute]
	g.r.saved = g.noted[positionName(time.Minute)]
	g.r.place, _ = parsePosition(g.r.saved)
	return told
}

// A schedule that dies each minute is told of at once, then after 1, 5 and 30 minutes, 2 and 8 hours, and then each 8 hours, whichever
// instance leads. Each task is told of once.
func TestDead_ofOneScheduleRepeatsAtGrowingDistances(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops", On: []Topic{Dead}})
	var at, want []time.Duration
	var sum int64
	const days = 2
	for range days * 24 * 60 {
		g.die("a")
		if n := g.window()[Dead]; n > 0 {
			at = append(at, g.at.Sub(start)-time.Minute)
			sum += n
		}
	}
	for next, i := time.Duration(0), 0; next < days*24*time.Hour; i++ {
		want = append(want, next)
		next += append(repeats[1:], 8*time.Hour, 8*time.Hour, 8*time.Hour, 8*time.Hour, 8*time.Hour, 8*time.Hour)[i]
	}
	if !slices.Equal(at, want) {
		t.Errorf("told at %v\n    want %v", at, want)
	}
	if most := int64((at[len(at)-1] + time.Minute) / time.Minute); sum != most {
		t.Errorf("told of %d dead tasks, of %d up to the last message", sum, most)
	}
}

// Deaths within a distance are told of when the distance is over, although nothing dies any more.
func TestDead_withinADistanceIsToldOfLater(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops", On: []Topic{Dead}})
	var got []int64
	for i := range 12 {
		if i < 4 {
			g.die("a")
		}
		got = append(got, g.window()[Dead])
	}
	if want := []int64{1, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
}

// A schedule that has recovered, which is to be well for a whole window, is told of at once when it dies again; one that flaps is not.
func TestDead_beginsAnewWhenTheScheduleHasRecovered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		well int // windows with a success only
		want int64
	}{"it recovered": {2, 1}, "it flaps": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newReign(t, Target{Name: "ops", On: []Topic{Dead}})
			for range 3 { // the next distance is 5 minutes
				g.die("a")
				g.window()
			}
			for range tt.well {
				g.run("a@1", history.Done, "")
				g.window()
			}
			if tt.well == 0 {
				g.run("a@1", history.Done, "")
			}
			g.die("a")
			if got := g.window()[Dead]; got != tt.want {
				t.Errorf("told of %d, want %d", got, tt.want)
			}
		})
	}
}

// One schedule that dies each minute holds up no other, nor tasks of none.
func TestDead_ofOthersIsToldAtOnce(t *testing.T) {
	t.Parallel()
	g := newReign(t, Target{Name: "ops", On: []Topic{Dead}})
	for range 3 {
		g.die("a")
		g.window()
	}
	g.die("a")
	g.die("b")
	g.died = append(g.died, queue.Death{ID: "aaaaaaaaaaaaaaaaaaaa", At: g.at})
	if got := g.window()[Dead]; got != 2 {
		t.Errorf("told of %d, want 2", got)
	}
}
