package model

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
)

// book says what must be true, by the contracts of the scripts and the promises. It is kept from the calls and their replies.
// The data in Redis is only compared with it.
type book struct {
	rule  rule
	tasks map[string]entry
	// registry
	members  map[int64]member
	orphans  map[int64]bool
	releases map[string]presence
	leader   int64 // generation
	epoch    int64
	open     bool
	joins    int
	gen      int64 // the largest ever given, as the two below
	order    int64
	fence    int64
	seqs     map[int64]int64
	// the generations that declared
	declarers map[int64]presence
	trial     map[int64]int64 // generation -> the end of its probation, or of the time in which it must prove itself
	strikes   map[string]strike
	asked     map[string]request // by the ID of the instance
	suspects  map[string]suspect // by the ID of the instance
	out       monitor
	pushed    int64 // when a leader last pushed
	seen      signs // the leader's signs of life at the last look
	// schedule
	rev    int64
	fates  map[int64]fate // of each slot so far
	unique map[string]holder
}

// rule is the configuration that all instances of a room share.
type rule struct{ lead, consume string }

type fate uint8

const (
	pushed fate = iota + 1
	noted
	owing // it was missed, and will still be pushed
)

// holder is the task that holds a unique window, and until when.
type holder struct {
	id    string
	until int64
}

// fault is what the search looks for: something that differs from the book.
type fault struct{ text string }

// broken stops the run, because a promise does not hold.
func broken(promise int, format string, args ...any) {
	panic(fault{fmt.Sprintf("promise %d: ", promise) + fmt.Sprintf(format, args...)})
}

func newBook(r rule) book {
	return book{
		rule: r, tasks: map[string]entry{}, members: map[int64]member{}, orphans: map[int64]bool{},
		releases: map[string]presence{}, declarers: map[int64]presence{}, trial: map[int64]int64{}, strikes: map[string]strike{},
		asked: map[string]request{}, suspects: map[string]suspect{},
		seqs: map[int64]int64{}, fates: map[int64]fate{}, unique: map[string]holder{},
	}
}

func (b *book) clone() book {
	c := *b
	c.tasks, c.members, c.orphans = maps.Clone(b.tasks), maps.Clone(b.members), maps.Clone(b.orphans)
	c.releases, c.seqs = maps.Clone(b.releases), maps.Clone(b.seqs)
	c.declarers, c.trial, c.strikes = maps.Clone(b.declarers), maps.Clone(b.trial), maps.Clone(b.strikes)
	c.asked, c.suspects = maps.Clone(b.asked), maps.Clone(b.suspects)
	c.fates, c.unique = maps.Clone(b.fates), maps.Clone(b.unique)
	return c
}

// mark writes down the part of the book that Redis does not hold as well.
func (b *book) mark(h *maphash.Hash, ranks func(int64) int) {
	for _, id := range slices.Sorted(maps.Keys(b.tasks)) {
		e := b.tasks[id]
		e.fence = int64(ranks(e.fence))
		fmt.Fprintf(h, "%s %v\n", id, e)
	}
	fmt.Fprintf(h, "%v %v %v %v\n", b.fates, b.members, b.orphans, b.declarers)
	fmt.Fprintf(h, "%v %v %v\n", b.trial, b.strikes, b.asked)
	fmt.Fprintf(h, "%d %d %d %d\n", b.joins, b.gen, b.order, b.rev)
}

// refusal returns the error that Redis must answer if a call is not allowed.
func (b *book) refusal(c call, now int64) refusal {
	m, known := b.members[c.gen]
	switch c.op {
	case "ready", "resign", "beat", "open", "declare", "stand down", "advance", "catchup", "put off", "repay", "give up", "cycle",
		"look out", "suspect":
		if !known || m.id != c.id || m.lease <= now {
			return fenced
		}
	}
	switch c.op {
	case "open", "declare", "stand down", "advance", "catchup", "put off", "repay", "give up":
		if b.leader != c.gen || b.epoch != c.epoch {
			return notLeader
		}
	case "define":
		if b.epoch != c.epoch {
			return notLeader
		}
	case "cycle":
		if c.seq <= b.seqs[c.gen] {
			return stale
		}
	case "recover", "recover one":
		if !b.orphans[c.orphan] {
			return alive
		}
	case "cancel", "forget":
		if e := b.tasks[c.task]; e.place == gone {
			return notFound
		}
	}
	return done
}

// promiseOf returns the promise that a refusal serves.
func promiseOf(c call, why refusal) int {
	switch {
	case c.op == "define" || c.op == "declare":
		return 9
	case why == notLeader:
		return 1
	case c.op == "cycle" || c.op == "recover" || c.op == "recover one":
		return 4
	}
	return 5
}

// judge compares a reply, and what the call left in Redis, with what the call had to do. Then it updates the book.
func (b *book) judge(w *world, c call, a answer, before disk, notes []string) {
	if want := b.refusal(c, w.now); want != a.refused {
		broken(promiseOf(c, want), "%s of %s must be answered %q, and was answered %q", c.op, c.id, want, a.refused)
	}
	if a.refused != done {
		if !before.equal(w.disk, func(string) bool { return false }) || len(notes) > 0 {
			broken(promiseOf(c, a.refused), "%s was refused (%v) and changed something", c.op, a.refused)
		}
		return
	}
	judgeLanes(w.disk, before)
	var said []string // the lines that the history must have of this call
	switch c.op {
	case "join", "ready", "resign", "leave", "beat", "open", "declare", "promote", "stand down",
		"ask to resign", "ask to drain", "look out", "suspect":
		b.judgeRegistry(w, c, a, before)
	case "cycle":
		said = b.judgeCycle(w, c, a, before, notes)
	case "recover", "recover one":
		said = b.judgeRecover(c, a, before)
	case "enqueue":
		b.judgeEnqueue(w, c, a)
	case "cancel", "forget":
		said = b.judgeCancel(w, c, a)
	case "revive":
		b.judgeRevive(w.now, c, a, waitingEntry(w.room.task(c.task), 0))
	case "advance", "catchup", "put off", "repay", "give up":
		said = b.judgeAdvance(w, a, before)
		if b.moves(w, a, before) {
			b.pushed = w.now
		}
	case "read":
		if last := w.disk.get(keys.Last, scheduleName); a.last != last {
			broken(1, "it was read as %q, and is %q", a.last, last)
		}
	case "make", "pause", "resume", "delete", "retire", "restore", "alter", "define":
		said = b.judgeChange(w, c, a, before)
	}
	slices.Sort(said)
	slices.Sort(notes)
	if !slices.Equal(said, notes) {
		broken(2, "%s: the history must say %q, and says %q", c.op, said, notes)
	}
}

// check compares everything in Redis with the book.
func (b *book) check(w *world) {
	b.checkPlaces(w)
	b.checkHolders(w)
	b.checkRegistry(w)
	b.checkSlots(w)
	b.checkWatch(w)
}
