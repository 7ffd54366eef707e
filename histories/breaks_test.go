package histories

import (
	"errors"
	"testing"

	"github.com/anishathalye/porcupine"
)

// snag is a break of the scripts, and the runs whose histories must show it.
type snag struct {
	name     string
	old, new string // a text in a script, and its replacement
	run      func(*stage) *history
	model    porcupine.Model
}

// tries is how many runs a break may hide for.
const tries = 30

// mustShow fails the test unless a run with the broken script has a history that no order of its calls allows. Calls that
// fail in other ways do not matter: the script is broken.
func (b snag) mustShow(s *stage) {
	s.broken = &swap{old: b.old, new: b.new}
	var stray error
	for i := range tries {
		h := b.run(s)
		v := judge(b.model, h, patience/10) // a history that takes longer is dropped, and another run made
		if v.result == porcupine.Illegal {
			s.Logf("run %d, of %d calls:\n%s", i+1, len(v.ops), v.where())
			return
		}
		stray = errors.Join(stray, h.stray())
	}
	if s.broken.hits == 0 {
		s.Fatalf("%q stands in no script that ran: look for what took its place", b.old)
	}
	s.Errorf("nobody noticed in %d runs that %q became %q: %v", tries, b.old, b.new, stray)
}

// show tries the first few breaks on one server, and in a soak all of them.
func show(t *testing.T, few int, breaks []snag) {
	t.Parallel()
	s := newStage(t)
	for _, b := range breaks[:size(few, len(breaks))] {
		t.Run(b.name, func(t *testing.T) { b.mustShow(&stage{T: t, server: s.server, admin: s.admin}) })
	}
}

func TestLeases_showBreaks(t *testing.T) {
	breaks := []snag{
		{name: "a leader acts after its term", old: `lead[1] ~= id or lead[2] ~= gen or lead[3] ~= epoch`, new: `false`},
		{name: "an epoch does not rise", old: `local epoch = int(rise("epoch"))`, new: `local epoch = redis.call("HGET", meta, "epoch") or int(rise("epoch"))`},
		{name: "a lease that ran out counts", old: `return lease and tonumber(lease) > now, member`, new: `return true, member`},
		{name: "a leader acts in a later term of its own", old: `lead[2] ~= gen or lead[3] ~= epoch`, new: `lead[2] ~= gen`},
		{name: "the oldest leads", old: `m.gen > best.gen`, new: `m.gen < best.gen`},
		{name: "who resigns leads on", old: `unwatch(id) -- a wake-up for it would be lost`, new: `return view()`},
		{name: "who is lost leads on", old: `local found = sweep()`, new: `local found = false`},
		{name: "a step counts twice", old: `if current[i] ~= plan.expect or elsewhere(plan) then`, new: `if false then`},
		{name: "another leader's gate stays open", old: `local open = current[1] and current[1] ~= "" and current[3] or "0"`, new: `local open = current[3] or "1"`},
		{name: "who is suspected leads on", old: `m.id, m.suspected = id, suspected(id, m)`, new: `m.id = id`},
		{name: "who lives is suspected", old: `local same = known and signs == ARGV[5]`, new: `local same = known`},
		{name: "a generation does not rise", old: `local gen, order = rise("gen"), 0`, new: `local gen, order = tonumber(redis.call("HGET", meta, "gen") or rise("gen")), 0`},
	}
	for i := range breaks {
		breaks[i].run, breaks[i].model = leasesRun, leasesSpec.model()
	}
	show(t, 2, breaks)
}

func TestClaims_showBreaks(t *testing.T) {
	breaks := []snag{
		{name: "a fence that was passed settles", old: `if value and (value == held_by or string.find(value, fence, 1, true) == 1) then`, new: `if value then`},
		{name: "what is claimed stays due", old: `redis.call("ZREMRANGEBYRANK", lane.key, 0, found - 1)`, new: ``},
		{name: "the dead go on", old: `if not member or string.match(member, "^(%d+) %d+ %a %d %a+ %a+") ~= gen then`, new: `if not member then`},
		{name: "what was settled is taken back", old: `local is_held = redis.call("HGET", running, task) == value`, new: `local is_held = true`},
		{name: "who lives is taken from", old: `if not redis.call("ZSCORE", orphans, gen) then`, new: `if false then`},
		{name: "a task is added twice", old: `if look and (seen[id] or exists[(i - 1) % chunk + 1]) then`, new: `if false then`},
		{name: "a late call counts", old: `if seq <= last_seq then`, new: `if false then`},
		{name: "a fence does not rise", old: `fence = math.max(fence + 1, clock[1] * 1000000 + clock[2])`, new: `fence = math.max(fence, 1)`},
		{name: "a run that ended is still held", old: `redis.call("HDEL", running, unpack(list, first, last))`, new: ``},
		{name: "a task runs early", old: `"-inf", int(now), "BYSCORE"`, new: `"-inf", int(now + 1000), "BYSCORE"`},
		{name: "a settlement is forgotten", old: `many("ZADD", done, ends)`, new: ``},
	}
	for i := range breaks {
		breaks[i].run, breaks[i].model = claimsRun, claimsSpec.model()
	}
	show(t, 2, breaks)
}

func TestLockScripts_showBreaks(t *testing.T) {
	breaks := []snag{
		{name: "who lost it keeps it", old: `if holder == ARGV[1] then
  redis.call("PEXPIRE", lock, px)`, new: `if holder then
  redis.call("PEXPIRE", lock, px)`},
		{name: "who lost it gives it back", old: `if redis.call("GET", lock) ~= ARGV[1] then`, new: `if not redis.call("GET", lock) then`},
		{name: "two have it", old: `if not holder then`, new: `if holder ~= ARGV[1] then`},
		{name: "a fence does not rise", old: `math.max(tonumber(redis.call("GET", fence) or 0) + 1, clock[1] * 1000000 + clock[2])`, new: `math.max(tonumber(redis.call("GET", fence) or 0), 1)`},
		{name: "a lease is short", old: `redis.call("SET", lock, ARGV[1], "PX", ARGV[2])`, new: `redis.call("SET", lock, ARGV[1], "PX", 20)`},
		{name: "a lease does not end", old: `redis.call("SET", lock, ARGV[1], "PX", ARGV[2])`, new: `redis.call("SET", lock, ARGV[1])`},
		{name: "a release is forgotten", old: `redis.call("DEL", lock)`, new: ``},
	}
	for i := range breaks {
		breaks[i].run, breaks[i].model = scriptsRun, scriptsSpec.model()
	}
	show(t, 2, breaks)
}

func TestLocks_showBreaks(t *testing.T) {
	breaks := []snag{
		{name: "two have it", old: `if not holder then`, new: `if holder ~= ARGV[1] then`},
		{name: "who lost it gives it back", old: `if redis.call("GET", lock) ~= ARGV[1] then`, new: `if not redis.call("GET", lock) then`},
		{name: "a lease is short", old: `redis.call("SET", lock, ARGV[1], "PX", ARGV[2])`, new: `redis.call("SET", lock, ARGV[1], "PX", 20)`},
		{name: "a fence does not rise", old: `math.max(tonumber(redis.call("GET", fence) or 0) + 1, clock[1] * 1000000 + clock[2])`, new: `math.max(tonumber(redis.call("GET", fence) or 0), 1)`},
		{name: "a release is forgotten", old: `redis.call("DEL", lock)`, new: ``},
	}
	for i := range breaks {
		breaks[i].run, breaks[i].model = locksRun, locksSpec.model()
	}
	show(t, 1, breaks)
}
