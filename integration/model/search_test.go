package model

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// node is a state that the search reached, and how it got there.
type node struct {
	parent *node
	name   string
	depth  int
	state  *state // kept for the first nodes; of the others it is dropped after it was searched
	edges  []edge // the steps from it, also kept for the first nodes
}

// edge is a step from one state to another.
type edge struct {
	action action
	called []string // the hashes of the scripts that ran
	mark   uint64   // of the state to which it led
}

func (n *node) trace() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append([]string{n.name}, names...)
	}
	return strings.Join(names, "\n  ")
}

// result is the outcome of a search.
type result struct {
	states, steps int
	fault         string // the first one, or ""
	trace         string
}

// search tries everything that can happen in a room, up to a depth, nearest states first. It stops at the first fault.
type search struct {
	room   *room
	worlds []*world
	most   int     // states after which it gives up; 0: it searches the whole room
	keep   int     // how many states to remember
	kept   []*node // the remembered ones, nearest first

	mu     sync.Mutex // guards the fields below
	seen   map[uint64]bool
	result result
	next   []*node
}

func newSearch(t testing.TB, r *room, broken map[string]string, workers int) *search {
	t.Helper()
	x := &search{room: r, seen: map[uint64]bool{}}
	for range workers {
		x.worlds = append(x.worlds, newWorld(t, r, broken))
	}
	return x
}

// run searches from the beginning of the room.
func (x *search) run(depth int) result {
	first := &node{state: x.room.begin()}
	for _, name := range x.room.setup {
		if first = x.named(first, name); first == nil {
			return x.result
		}
	}
	x.seen[first.state.mark()] = true
	level := []*node{first}
	x.result.states = 1
	for range depth {
		x.kept = append(x.kept, level[:min(len(level), max(x.keep-len(x.kept), 0))]...)
		x.level(level, x.expand)
		level, x.next = x.next, nil
		if x.over() || len(level) == 0 {
			break
		}
	}
	return x.result
}

// named takes one step of the setup.
func (x *search) named(n *node, name string) *node {
	for _, a := range x.room.menuOf(n.state, true) {
		if a.name != name {
			continue
		}
		s, text := x.worlds[0].try(n.state, a)
		next := &node{parent: n, name: name, state: s}
		if text != "" {
			x.result.fault, x.result.trace = text, next.trace()
			return nil
		}
		return next
	}
	x.result.fault, x.result.trace = "setup: nobody can: "+name, n.trace()
	return nil
}

// level searches all states of one distance, divided among the workers.
func (x *search) level(level []*node, look func(*world, *node)) {
	var at atomic.Int64
	var wg sync.WaitGroup
	for _, w := range x.worlds {
		wg.Go(func() {
			for {
				i := int(at.Add(1)) - 1
				if i >= len(level) || x.over() {
					return
				}
				look(w, level[i])
			}
		})
	}
	wg.Wait()
}

func (x *search) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result.fault != "" || x.most > 0 && x.result.states > x.most
}

// expand takes every possible step from a state.
func (x *search) expand(w *world, n *node) {
	keeps := slices.Contains(x.kept, n)
	for _, a := range x.room.menuOf(n.state, false) {
		mark, ok := x.step(w, n, a)
		if !ok {
			return
		}
		if keeps {
			n.edges = append(n.edges, edge{a, slices.Clone(w.between.called), mark})
		}
	}
	if !keeps {
		n.state = nil
	}
}

// step takes one step, and notes the state to which it leads. It returns false if it finds a fault.
func (x *search) step(w *world, n *node, a action) (mark uint64, ok bool) {
	s, text := w.try(n.state, a)
	next := &node{parent: n, name: a.name, depth: n.depth + 1, state: s}
	if text == "" {
		mark = s.mark()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result.steps++
	switch {
	case text != "" && x.result.fault == "":
		x.result.fault, x.result.trace = text, next.trace()
	case text == "" && !x.seen[mark]:
		x.seen[mark] = true
		x.result.states++
		x.next = append(x.next, next)
	}
	return mark, text == ""
}

// try takes a step from a state, and returns the next state, or its fault.
func (w *world) try(from *state, a action) (s *state, text string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fault:
			text = r.text
		default:
			panic(fmt.Sprint(a.name, ": ", r))
		}
	}()
	w.between.called = w.between.called[:0]
	w.enter(from.clone())
	a.do(w)
	w.book.check(w)
	return w.state, ""
}
