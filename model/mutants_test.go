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
	old, new string // what stands there, once, and what it is replaced by
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

// mutantStates bounds how many moments that differ are looked at, and so what a mutant costs that survives.
const mutantStates = 3000

// differ searches where a script behaves unlike the original: it takes again those steps in which it ran, and goes on
// from wherever they lead elsewhere.
func (x *search) differ(original *search, script string) result {
	var level []*node // where the original was not
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

// again takes again the steps from a moment in which a script ran.
func (x *search) again(n *node, script string) {
	for _, e := range n.edges {
		if slices.Contains(e.called, script) && !x.over() {
			x.seen[e.mark] = true // where the original was too is nothing new
			x.step(x.worlds[0], n, e.action)
		}
	}
}

// find matches a text whatever its line breaks and indentation.
func find(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}
