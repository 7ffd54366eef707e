package model

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutant is a script broken on purpose.
type mutant struct {
	script   string
	room     string // where the search must find it
	old, new string // a text that the script has once, and its replacement
}

// mustBeFound searches a room again with the script broken.
func (m mutant) mustBeFound(t *testing.T, original *search, source string) {
	at := find(m.old).FindAllStringIndex(source, -1)
	if len(at) != 1 {
		t.Fatalf("%q stands %d times in %s, not once: look for what took its place", m.old, len(at), m.script)
	}
	broken := source[:at[0][0]] + m.new + source[at[0][1]:]
	x := newSearch(t, original.room, map[string]string{hash(source): broken}, 1)
	x.most = mutantStates
	got := x.differ(original, hash(source))
	switch {
	case got.fault == "":
		t.Errorf("%s: nobody noticed that %q became %q, in %d steps", m.script, m.old, m.new, got.steps)
	case !strings.HasPrefix(got.fault, "promise"):
		t.Errorf("%s: it does not run: %s", m.script, got.fault)
	default:
		t.Logf("%d steps: %s", got.steps, got.fault)
	}
}

// Each break still has its place in the scripts. This is a test of its own, because one run tries only a few breaks.
func TestMutants_haveTheirPlaces(t *testing.T) {
	t.Parallel()
	originals := sources(t)
	for _, m := range append(mutants(), perPromise()...) {
		if n := len(find(m.old).FindAllStringIndex(originals[m.script], -1)); n != 1 {
			t.Errorf("%q stands %d times in %s, not once: look for what took its place", m.old, n, m.script)
		}
	}
}

// mutantStates bounds how many states that differ are searched, and so the cost of a mutant that survives.
const mutantStates = 3000

// differ searches the states in which a script behaves unlike the original. It repeats the steps in which the script ran,
// and goes on from each state that the original did not reach.
func (x *search) differ(original *search, script string) result {
	var level []*node // states that the original did not reach
	at := 0
	for depth := range original.room.depth {
		for ; at < len(original.kept) && original.kept[at].depth == depth && !x.over(); at++ {
			x.again(original.kept[at], script)
		}
		x.level(level, x.expand)
		level, x.next = x.next, nil
	}
	return x.result
}

// again repeats the steps from a state in which a script ran.
func (x *search) again(n *node, script string) {
	for _, e := range n.edges {
		if slices.Contains(e.called, script) && !x.over() {
			x.seen[e.mark] = true // the original reached this state too
			x.step(x.worlds[0], n, e.action)
		}
	}
}

// find returns an expression that matches a text with any line breaks and indentation.
func find(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}
