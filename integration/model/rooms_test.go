package model

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// room says which instances there are, what they do, and from which moment on. It is small enough for a search of its whole
// depth.
type room struct {
	name          string
	lead, consume string
	procs         []proc
	tasks         map[string]*task.Task
	want          int // most tasks that a cycle claims
	workers       int // of an instance, of which a schedule has half while others wait; 0: any number
	joins         int // most generations
	setup         []string
	verbs         string // the actions that may happen; "x lost" and "x late": with a lost reply, or arriving late
	depth         int
	states        int // the search must reach at least so many

	eager   bool // the leader may open the gate before it has caught up
	watched bool // states that differ only in their watchers count as different
	looks   bool // the same for what monitors know, and what is noted of suspects
	archive bool // each run is noted, also those of tasks that are no slots
	parsed  []string
}

func (r *room) has(verb string) bool { return slices.Contains(r.parsed, verb) }

// menuOf returns the actions that may happen in a state. In the setup, any may.
func (r *room) menuOf(s *state, setup bool) []action {
	c := *r
	verbs := r.verbs
	if setup {
		c.eager = true
		verbs += ", join, ready, beat, resign, leave, open, declare, define, read, advance, catchup, take, finish, keep, " +
			"return, die, settle, look, recover, enqueue, cancel, look at it, make, pause, resume, delete, alter, tick, brink, crash, " +
			"advance late, define late, quit late, hour, suspect, ask to resign, ask to drain"
	}
	c.parsed = strings.Split(verbs, ", ")
	return c.menu(s)
}

func keyed(id, key string, overlap task.Overlap) *task.Task {
	t := task.New("job", nil, task.ID(id), task.Key(key, 1))
	t.Overlap = overlap
	return t
}

func pair(id, typ string) *task.Task { return task.New(typ, nil, task.ID(id), task.Key("k", 2)) }

// opened is the setup after which a leads and the gate is open.
func opened(more ...string) []string { return append([]string{"a join", "a ready", "a open"}, more...) }

// keepMoments is how many states of a room are remembered, for mutants to begin from.
const keepMoments = 2500

// slow makes the search of each room end three steps earlier, and leaves out mutants.
var slow bool

// far returns how far to search a room, and whether that is in full: to its depth, and with mutants.
func (r *room) far(mutants []mutant) (depth int, exact bool) {
	switch {
	case slow:
		return r.depth - 3, false
	case testing.Short(), soak == 0 && !slices.ContainsFunc(mutants, func(m mutant) bool { return m.room == r.name }):
		return r.depth - 1, false
	}
	return r.depth + int(soak), soak == 0
}

// TestModel searches every room. Then it breaks the scripts on purpose, one break at a time, and the search must notice each.
// A test proves a promise only if it fails when the promise is broken. ONBEAT_MUTANTS=1 tries all breaks, else one a promise, and
// a room without one is searched a step less.
func TestModel(t *testing.T) {
	t.Parallel()
	originals, breaks := sources(t), perPromise()
	if os.Getenv("ONBEAT_MUTANTS") != "" {
		breaks = mutants()
	}
	var states, steps atomic.Int64
	for _, r := range rooms {
		t.Run(r.name, func(t *testing.T) {
			began := time.Now()
			x := newSearch(t, r, nil, 2)
			depth, exact := r.far(breaks)
			broken := slices.DeleteFunc(slices.Clone(breaks), func(m mutant) bool { return m.room != r.name || !exact })
			if len(broken) > 0 {
				x.keep = keepMoments
			}
			got := x.run(depth)
			states.Add(int64(got.states))
			steps.Add(int64(got.steps))
			t.Logf("%d states, %d steps to depth %d in %v", got.states, got.steps, depth, time.Since(began).Round(time.Millisecond))
			if got.fault != "" {
				t.Fatalf("%s\nafter:\n  %s", got.fault, got.trace)
			}
			if exact && got.states < r.states {
				t.Errorf("%d states were seen, and there are %d: what was left out?", got.states, r.states)
			}
			for _, m := range broken {
				t.Run("without/"+m.script+"/"+m.old, func(t *testing.T) {
					t.Parallel()
					m.mustBeFound(t, x, originals[m.script])
				})
			}
		})
	}
	t.Logf("%d states, %d steps", states.Load(), steps.Load())
}

// Every script has a mutant, and every mutant has a room.
func TestMutants_breakEveryScript(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, m := range mutants() {
		covered[m.script] = true
		if !slices.ContainsFunc(rooms, func(r *room) bool { return r.name == m.room }) {
			t.Errorf("there is no room %q", m.room)
		}
	}
	// These scripts are for damage, for partitions, for calls by hand, for requests of the API, for an archive, an outbox and notifications, which the
	// model does not have: see the packages queue, instance, archiver, outbox and notify.
	elsewhere := []string{"mend", "recount", "restock", "pause", "answer_claim", "answer_settle", "trim", "move", "moved", "notices",
		"bulk_ask", "bulk_note", "exist", "records", "split", "raise"}
	for _, script := range store.Scripts() {
		if !covered[script.Name] && !slices.Contains(elsewhere, script.Name) {
			t.Errorf("no mutant of %s: break something in it", script.Name)
		}
	}
}
