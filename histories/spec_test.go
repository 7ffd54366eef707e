package histories

import (
	"fmt"
	"hash/maphash"
	"os"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// spec is a promise as states and the steps between them: S is a state, C a call, R a reply.
type spec[S comparable, C, R any] struct {
	start S
	step  func(S, C, R) []S // all states that may follow; none if the reply is not allowed
	part  func(C) string    // calls of different parts do not affect each other; nil: there is one part
}

var seed = maphash.MakeSeed()

func (p spec[S, C, R]) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{p.start} },
		Step: func(state, asked, replied any) []any {
			var next []any
			for _, s := range p.step(state.(S), asked.(C), replied.(R)) {
				next = append(next, s)
			}
			return next
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(seed, state.(S)) },
		DescribeOperation: func(asked, replied any) string { return terse(asked) + " -> " + terse(replied) },
		DescribeState:     terse,
	}
	if p.part != nil {
		m.Partition = p.parts
	}
	return m.ToModel()
}

func (p spec[S, C, R]) parts(all []porcupine.Operation) [][]porcupine.Operation {
	var list [][]porcupine.Operation
	at := map[string]int{}
	for _, op := range all {
		name := p.part(op.Input.(C))
		if _, ok := at[name]; !ok {
			at[name] = len(list)
			list = append(list, nil)
		}
		list[at[name]] = append(list[at[name]], op)
	}
	return list
}

// patience is how long judging one history may take.
const patience = 30 * time.Second

// verdict is the result of porcupine.
type verdict struct {
	result porcupine.CheckResult
	model  porcupine.Model
	info   porcupine.LinearizationInfo
	ops    []porcupine.Operation
}

func judge(m porcupine.Model, h *history, most time.Duration) verdict {
	v := verdict{model: m, ops: h.all()}
	v.result, v.info = porcupine.CheckOperationsVerbose(m, v.ops, most)
	return v
}

// hold makes runs, and fails unless the specification allows each history. It reports the runs as a soak does.
func (s *stage) hold(what string, runs int, run func(*stage) *history, m porcupine.Model) {
	s.Helper()
	calls, unheard := 0, 0
	for range runs {
		h := run(s)
		mustHold(s.T, m, h)
		calls, unheard = calls+len(h.ops), unheard+len(h.lost)
	}
	besides := fmt.Sprintf("%d runs, %d calls, the replies of %d lost: porcupine found an order for all", runs, calls, unheard)
	if s.Failed() {
		besides = fmt.Sprintf("%d runs, %d calls (FAILED)", runs, calls)
	}
	s.Log(besides)
	path := os.Getenv("ONBEAT_SOAK_TABLE")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	const none = " - | - | - | - | - | - | - | - "
	if _, err := fmt.Fprintf(file, "| histories of %s |%s| %s |\n", what, none, besides); err != nil {
		s.Error(err)
	}
}

// mustHold fails the test unless the specification allows the history.
func mustHold(t *testing.T, m porcupine.Model, h *history) {
	t.Helper()
	if err := h.stray(); err != nil {
		t.Errorf("a call failed in a way that no fault explains: %v", err)
		return
	}
	v := judge(m, h, patience)
	switch v.result {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		t.Errorf("%d calls could not be judged in %v: make the run shorter, or its faults fewer, until fewer replies are lost",
			len(v.ops), patience)
	default:
		t.Errorf("no order of these %d calls keeps the promise", len(v.ops))
	}
	t.Log(v.where())
	if path, err := v.draw(t); err != nil {
		t.Errorf("draw the history: %v", err)
	} else {
		t.Logf("the history is drawn in %s", path)
	}
}
