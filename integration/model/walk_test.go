package model

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/task"
)

// soak makes the search of each room go so many steps further, without mutants, and makes walks longer. rapid's own flag
// -rapid.checks says how many walks.
var soak = number(os.Getenv("ONBEAT_SOAK"))

// everything is one room with all that the others have. It is far too large for a search, so random walks go through it.
func everything(lead, consume string) *room {
	return &room{
		name: "everything", lead: lead, consume: consume, eager: true,
		procs: []proc{
			{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1"}, {id: "d", release: "v2", standby: true},
		},
		tasks: map[string]*task.Task{
			"x": task.New("job", nil, task.MaxAttempts(2)), "y": task.New("rare", nil), "z": task.New("rare", nil, task.MaxAttempts(1)),
			"w": keyed("w", "k", task.Wait), "s": keyed("s", "k", task.Skip), "q": keyed("q", "k", task.QueueUp), "r": keyed("r", "k", task.Replace),
		},
		joins: 1000, want: 3,
		verbs: "join, join lost, beat, beat lost, beat late, ready, ready late, resign, resign late, quit, leave, leave late, crash, " +
			"read, advance, advance lost, advance late, put off, repay, repay late, give up, open, open late, declare, declare late, define, define late, " +
			"take, take lost, take late, finish, finish lost, finish late, keep, return, return lost, die, settle, again, " +
			"look, recover, recover one, enqueue, cancel, forget, revive, tidy, look at it, make, pause, resume, delete, alter, " +
			"tick, brink, promote, retire, restore, ask to resign, ask to drain, " +
			"suspect, suspect late, look out, look out lost, moment",
	}
}

// Long random walks, beyond the depth of the search.
func TestModel_walks(t *testing.T) {
	t.Parallel()
	for _, lead := range []string{"newest", "sticky"} {
		for _, consume := range []string{"newest", "release", "all"} {
			t.Run(lead+" "+consume, func(t *testing.T) {
				r := everything(lead, consume)
				w := newWorld(t, r, nil)
				rapid.Check(t, func(rt *rapid.T) { walk(rt, w) })
			})
		}
	}
}

func walk(rt *rapid.T, w *world) {
	most := 80
	switch {
	case soak > 0:
		most = 1000
	case slow:
		most = 8
	}
	s := w.room.begin()
	var names []string
	for i := range rapid.IntRange(most/4, most).Draw(rt, "steps") {
		list := w.room.menuOf(s, false)
		n := rapid.IntRange(0, len(list)-1).Draw(rt, "step")
		a := list[(n+31*i)%len(list)] // rapid prefers small numbers, and no step should be preferred
		names = append(names, a.name)
		next, text := w.try(s, a)
		if text != "" {
			rt.Fatalf("%s\nafter:\n  %s", text, strings.Join(names, "\n  "))
		}
		s = next
	}
}
