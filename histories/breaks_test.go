package histories

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// snag is a break of the scripts, and the runs whose histories must show it.
type snag struct {
	name     string
	old, new string // what stands in a script, and what it is replaced by
	run      func(*stage) *history
	model    porcupine.Model
}

// tries is how many runs a break may hide for.
const tries = 12

// mustShow fails the test unless a run with the script broken has a history that no order of its calls allows.
func (b snag) mustShow(t *testing.T) {
	s := newStage(t)
	s.broken = &swap{old: b.old, new: b.new}
	for i := range tries {
		h := b.run(s)
		if s.broken.hits == 0 {
			t.Fatalf("%q stands in no script that ran: look for what took its place", b.old)
		}
		if err := h.stray(); err != nil {
			t.Fatalf("it does not run: %v", err)
		}
		v := judge(b.model, h)
		if v.result == porcupine.Illegal {
			t.Logf("run %d of %d calls:\n%s", i+1, len(v.ops), v.where())
			return
		}
	}
	t.Errorf("nobody noticed in %d runs that %q became %q", tries, b.old, b.new)
}

func show(t *testing.T, breaks []snag) {
	t.Parallel()
	for _, b := range breaks[:size(min(3, len(breaks)), len(breaks))] {
		t.Run(b.name, func(t *testing.T) { t.Parallel(); b.mustShow(t) })
	}
}

func TestLeases_showBreaks(t *testing.T) {
	breaks := []snag{
		{name: "a leader acts after its term", old: `lead[1] ~= id or lead[2] ~= gen or lead[3] ~= epoch`, new: `false`},
		{name: "a lease that ran out counts", old: `return lease and tonumber(lease) > now, member`, new: `return true, member`},
		{name: "an epoch does not rise", old: `local epoch = int(rise("epoch"))`, new: `local epoch = redis.call("HGET", meta, "epoch") or int(rise("epoch"))`},
		{name: "a leader acts in a later term of its own", old: `lead[2] ~= gen or lead[3] ~= epoch`, new: `lead[2] ~= gen`},
		{name: "the oldest leads", old: `m.gen > best.gen`, new: `m.gen < best.gen`},
		{name: "who resigns leads on", old: `unwatch(id) -- a wake-up for it would wake nobody`, new: `return view()`},
		{name: "who is lost leads on", old: `local found = sweep()`, new: `local found = false`},
		{name: "a step counts twice", old: `if current[i] ~= plan.expect then`, new: `if false then`},
		{name: "another leader's gate stays open", old: `local open = current[1] and current[1] ~= "" and current[3] or "0"`, new: `local open = current[3] or "1"`},
		{name: "a generation does not rise", old: `local gen, order = rise("gen"), 0`, new: `local gen, order = tonumber(redis.call("HGET", meta, "gen") or rise("gen")), 0`},
	}
	for i := range breaks {
		breaks[i].run, breaks[i].model = leasesRun, leasesSpec.model()
	}
	show(t, breaks)
}
