package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// place is where a task is, by the book. A waiting task lies in its lane, or waits for its key.
type place uint8

const (
	gone place = iota
	waiting
	running
	dead
	kept
)

// entry is a task, as the book has it.
type entry struct {
	place    place
	due      int64 // waiting
	gen      int64 // running
	fence    int64
	attempts int
	end      int64 // kept until
	typ      string
	key      string
	limit    int
	overlap  task.Overlap
}

func waitingEntry(t *task.Task, due int64) entry {
	return entry{place: waiting, due: due, typ: t.Type, key: t.Key, limit: max(t.KeyLimit, 1), overlap: t.Overlap}
}

// count returns how many tasks of a key, or of a type, run.
func (b *book) count(same func(entry) bool) int {
	n := 0
	for _, e := range b.tasks {
		if e.place == running && same(e) {
			n++
		}
	}
	return n
}

func (b *book) judgeCycle(w *world, c call, a answer, before disk, notes []string) []string {
	b.seqs[c.gen] = c.seq
	said := b.judgeSettled(w, c, a, before)
	m := b.members[c.gen]
	permitted := b.permits(c.gen)
	r := a.cycle
	if r.MayClaim != permitted || !permitted && len(r.Claimed) > 0 {
		broken(5, "%s may claim: %v (claimed %d); must be %v", c.id, r.MayClaim, len(r.Claimed), permitted)
	}
	if len(r.Claimed) > c.want || len(r.Malformed) > 0 {
		broken(3, "%d claimed of %d, %d of them damaged", len(r.Claimed), c.want, len(r.Malformed))
	}
	skipped := 0
	for _, note := range notes {
		id, ok := strings.CutSuffix(note, " skipped overlap")
		if e := b.tasks[id]; ok {
			if e.place != waiting || e.key == "" || e.overlap == task.Behind {
				broken(3, "%s was skipped, and is %v", id, e)
			}
			b.judgeSkipped(id, e)
			delete(b.tasks, id)
			said = append(said, note)
			skipped++
		}
	}
	if skipped != r.Skipped {
		broken(2, "%d were skipped, and %d noted", r.Skipped, skipped)
	}
	b.judgeClaimed(w, c, r, m)
	b.judgeOverlap(w, before)
	return said
}

// permits is the rule by which a generation may claim.
func (b *book) permits(gen int64) bool {
	m, leader := b.members[gen], b.members[b.leader]
	return b.open && (b.leader == gen || m.ready && !m.drains && (b.rule.consume == "all" ||
		b.rule.consume == "release" && leader.rank.order == m.rank.order))
}

// judgeSettled: a task that a live generation holds under this fence goes where the settlement sends it, unless it would run
// again although a caller asked to cancel it. No other task moves.
func (b *book) judgeSettled(w *world, c call, a answer, before disk) (said []string) {
	var void, refused []int
	for i, x := range c.settle {
		e := b.tasks[x.id]
		if e.place != running || e.gen != c.gen || e.fence != x.fence {
			void = append(void, i)
			continue
		}
		if c.outcome == queue.Moved && e.asked(x.id, before) {
			refused = append(refused, i)
			continue
		}
		e.gen, e.fence = 0, 0
		switch c.outcome {
		case queue.Finished:
			e.place = gone
		case queue.Kept:
			e.place, e.end, e.attempts = kept, w.now+keepFor.Milliseconds(), settledAttempts
		case queue.Moved:
			e.place, e.due = waiting, x.due+1
		case queue.Died:
			e.place, e.attempts = dead, settledAttempts
		}
		b.tasks[x.id] = e
		if note := w.settleNote(c, x); note != "" {
			said = append(said, note)
		}
	}
	if !slices.Equal(void, a.cycle.Void) {
		broken(4, "of what %s settled %v is void; must be %v", c.id, a.cycle.Void, void)
	}
	if !slices.Equal(refused, a.cycle.Refused) {
		broken(4, "of what %s put back %v was to be cancelled; must be %v", c.id, a.cycle.Refused, refused)
	}
	return said
}

func (b *book) judgeClaimed(w *world, c call, r *queue.CycleReply, m member) {
	for _, t := range r.Claimed {
		e := b.tasks[t.ID]
		if e.place != waiting || e.due > w.now {
			broken(3, "%s claimed %s, which is %v, at %d", c.id, t.ID, e, w.now)
		}
		if t.Fence <= b.fence || t.Fence != r.Claimed[0].Fence {
			broken(4, "%s has fence %d, after %d", t.ID, t.Fence, b.fence)
		}
		if t.Attempt != e.attempts+1 {
			broken(3, "%s is at attempt %d, after %d", t.ID, t.Attempt, e.attempts)
		}
		e.place, e.gen, e.fence = running, c.gen, t.Fence
		b.tasks[t.ID] = e
	}
	if len(r.Claimed) == 0 {
		b.leftBehind(w, c, r)
		return
	}
	b.fence = r.Claimed[0].Fence
	b.leftBehind(w, c, r)
	b.judgeCrowd(w, c, r)
	if best, ok := b.best(w.now); ok && b.rule.consume != "all" &&
		(m.rank.order < best.rank.order || b.rule.lead+b.rule.consume == "newestnewest" && m.rank.gen != best.rank.gen) {
		broken(5, "%s %v took work while %s %v was ready", m.id, m.rank, best.id, best.rank)
	}
}

// leftBehind: an instance that may claim, and has room, leaves no due task, unless a limit holds it back.
func (b *book) leftBehind(w *world, c call, r *queue.CycleReply) {
	for _, t := range r.Claimed {
		e := b.tasks[t.ID]
		if e.key != "" && b.count(func(o entry) bool { return o.key == e.key }) > e.limit {
			broken(4, "more of key %s run than may", e.key)
		}
	}
	for _, l := range lanes {
		n := b.count(func(o entry) bool { return o.typ == l.Lane.Type })
		if l.Limit > 0 && n > l.Limit {
			broken(4, "%d of type %s run, %d may", n, l.Lane.Type, l.Limit)
		}
		if !r.MayClaim || len(r.Claimed) >= c.want || l.Limit > 0 && n == l.Limit {
			continue
		}
		for _, f := range w.disk[keys.Due(l.Lane)].fields {
			if int64(f.score) <= w.now {
				broken(2, "%s had room and left %s, due at %v", c.id, f.name, f.score)
			}
		}
	}
}

func (b *book) judgeRecover(c call, a answer, before disk) (said []string) {
	for _, r := range a.recoveries {
		id := r.Claim.Task.ID
		e := b.tasks[id]
		if e.place != running || e.gen != c.orphan {
			continue
		}
		if r.Asked != nil && e.asked(id, before) {
			r = *r.Asked
		}
		e.place, e.gen, e.fence, e.overlap = waiting, 0, 0, e.overlap.Begun()
		e.due, e.attempts = store.Ms(r.Claim.Task.Due)+1, r.Claim.Task.Attempts+1
		if r.Dead {
			e.place = dead
		}
		b.tasks[id] = e
		if r.Note != "" {
			said = append(said, r.Note)
		}
	}
	left := b.count(func(e entry) bool { return e.gen == c.orphan })
	if a.count != left {
		broken(3, "generation %d has %d tasks left; must be %d", c.orphan, a.count, left)
	}
	if left == 0 {
		delete(b.orphans, c.orphan)
	}
	return said
}

func (b *book) judgeEnqueue(w *world, c call, a answer) {
	t := w.room.task(c.task)
	refused := ""
	if h := b.unique[t.UniqueKey]; t.UniqueKey != "" && h.until > w.now {
		refused = "unique"
	}
	if b.tasks[c.task].place != gone {
		refused = "id"
	}
	if a.dup != refused {
		broken(3, "%s was refused by %q; must be by %q", c.task, a.dup, refused)
	}
	if refused != "" {
		return
	}
	b.tasks[c.task] = waitingEntry(t, w.now+t.Delay.Milliseconds())
	if t.UniqueKey != "" {
		b.unique[t.UniqueKey] = holder{c.task, w.now + t.UniqueFor.Milliseconds()}
	}
}

func (b *book) judgeCancel(w *world, c call, a answer) (said []string) {
	e := b.tasks[c.task]
	want := map[place]task.State{waiting: task.Due, running: task.Running, dead: task.Dead, kept: task.Done}[e.place]
	if a.state != want {
		broken(3, "%s %s: it was %q; must be %q", c.op, c.task, a.state, want)
	}
	if e.place == running {
		asked := w.disk.get(keys.Cancel, c.task)
		if fence, _, _ := strings.Cut(asked, " "); number(fence) < e.fence {
			broken(4, "%s is to be cancelled up to %s, and runs under %d", c.task, fence, e.fence)
		}
		return nil
	}
	if e.place == waiting || c.op == "forget" {
		delete(b.tasks, c.task)
	}
	_, _, slot := task.ParseSlotID(c.task)
	if note := w.room.line(slot, fmt.Sprintf("%s cancelled %d 0", c.task, e.attempts)); note != "" && e.place == waiting {
		said = append(said, note)
	}
	return said
}

func (b *book) judgeRevive(now int64, c call, a answer, revived entry) {
	e := b.tasks[c.task]
	if (a.count == 1) != (e.place == dead) {
		broken(3, "%d of %s came back to life, and it was %v", a.count, c.task, e)
	}
	if e.place == dead {
		e.place, e.due, e.attempts, e.overlap = waiting, now, 0, revived.overlap
		b.tasks[c.task] = e
	}
}
