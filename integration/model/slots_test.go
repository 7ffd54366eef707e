package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// stored is the schedule's last run, as it lies in Redis.
func stored(d disk) (last queue.Last, raw string) {
	raw = d.get(keys.Last, scheduleName)
	last, err := queue.ParseLast(raw)
	if err != nil {
		broken(2, "last run %q: %v", raw, err)
	}
	return last, raw
}

// judgeAdvance: a step takes effect if the schedule is still as the leader read it; else nothing happens.
func (b *book) judgeAdvance(w *world, a answer, before disk) (said []string) {
	was, now := before.get(keys.Last, scheduleName), w.disk.get(keys.Last, scheduleName)
	b.judgeMoved(a.step.Expect, a.moved, was, now, a.step.Behind != a.step.Remains && a.step.Behind != behind(before))
	if a.moved {
		return nil
	}
	lies := before.places()
	for _, d := range a.step.Drop {
		f := lies[d.ID]
		if f.place != waiting || f.held || f.due != store.Ms(d.Due) {
			continue
		}
		delete(b.tasks, d.ID)
		said = append(said, d.ID+" missed outage")
	}
	if a.count != len(said) {
		broken(2, "%d slots were dropped; must be %d", a.count, len(said))
	}
	want, _ := queue.ParseLast(a.step.Becomes)
	want.Runs -= int64(len(said)) // these slots did not run
	if now != want.String() {
		broken(1, "the last run is %q; must be %q", now, want)
	}
	for _, p := range a.step.Push {
		b.push(p, w.now)
	}
	said = append(said, b.note(a.step.Note, was)...)
	if a.step.Remains == a.step.Behind {
		return said
	}
	for _, s := range owed(a.step.Remains, now) {
		if b.fates[s] != 0 && b.fates[s] != owing {
			broken(1, "slot %d is put off, and was dealt with before", s)
		}
		b.fates[s] = owing
	}
	return said
}

// behind is the slots that the schedule is behind with, as they lie in Redis.
func behind(d disk) string { return d.get(keys.Behind, scheduleName) }

// judgeMoved: a schedule that another caller has changed since, or whose slots behind have changed, is left alone.
func (b *book) judgeMoved(read string, moved bool, was, now string, late bool) {
	if must := read != was || late; moved != must {
		broken(1, "it was read as %q, was %q: left alone %v; must be %v", read, was, moved, must)
	}
	if moved && was != now {
		broken(1, "it was left alone, and went from %q to %q", was, now)
	}
}

// push notes that a slot was pushed. That happens at most once, and never after the slot was disposed of.
func (b *book) push(p queue.Push, now int64) {
	slot := store.Ms(p.Task.Slot)
	if f := b.fates[slot]; f != 0 && f != owing {
		broken(1, "slot %d is pushed, and was pushed (1) or disposed of (2) before: %d", slot, b.fates[slot])
	}
	b.fates[slot] = pushed
	due := store.Ms(p.Due)
	if due == 0 {
		due = now
	}
	b.tasks[p.Task.ID] = waitingEntry(p.Task, due)
}

// note notes that slots were disposed of, and returns the lines that the history must have.
func (b *book) note(text, last string) []string {
	if text == "" {
		return nil
	}
	if one, more, ok := strings.Cut(text, "\n"); ok {
		return append(b.note(one, last), b.note(more, last)...)
	}
	l, err := queue.ParseLast(last)
	if err != nil {
		broken(2, "last run %q: %v", last, err)
	}
	var name, rest string
	var from, to int64
	var n int
	name, rest, _ = strings.Cut(text, "@")
	var word string
	if _, err := fmt.Sscanf(rest, "%d..%d %s %d", &from, &to, &word, &n); err != nil || name != scheduleName {
		broken(2, "note %q: %v", text, err)
	}
	list := slots(store.Ms(l.Anchor), from-1, to)
	if len(list) != n {
		broken(2, "note %q: these are %d slots", text, len(list))
	}
	for _, s := range list {
		if b.fates[s] != 0 && b.fates[s] != owing {
			broken(2, "slot %d is %s, and was dealt with before", s, word)
		}
		b.fates[s] = noted
	}
	return []string{text}
}

// judgeChange: slots that were pushed ahead of now leave in the same step, and the revision rises.
func (b *book) judgeChange(w *world, c call, a answer, before disk) (said []string) {
	was, wasRaw := stored(before)
	now, raw := stored(w.disk)
	b.judgeMoved(c.last, a.moved, wasRaw, raw, wasRaw != "" && a.change.Behind != "" && a.change.Behind != behind(before))
	if a.moved {
		return nil
	}
	for _, x := range a.change.Ahead {
		for slot := store.Ms(x.Slot); x.Count > 0 && slot > w.now; slot, x.Count = slot-x.Every.Milliseconds(), x.Count-1 {
			// The slot may be pushed again: no instance could have run it the first time. That also holds for a slot that
			// the client cancelled, although it was told that the task is removed.
			delete(b.tasks, slotID(slot))
			delete(b.fates, slot)
		}
	}
	kept, err := queue.ParseLast(a.last)
	if err != nil {
		broken(2, "it was retired at %q: %v", a.last, err)
	}
	if c.op == "restore" {
		was, wasRaw = kept, a.last
		said = b.note(a.change.Note, wasRaw)
		if !now.Anchor.Equal(kept.Anchor) || now.Runs != kept.Runs || now.Paused != kept.Paused {
			broken(2, "it was retired at %q, and came back as %q", a.last, raw)
		}
	} else {
		said = b.note(a.change.Note, wasRaw)
	}
	b.judgeKept(w, c, a, before)
	if c.op == "delete" || c.op == "retire" {
		if _, ok := w.disk.find(keys.Schedules, scheduleName); ok || raw != "" {
			broken(2, "it was deleted, and is there: %q", raw)
		}
		b.allDealtWith(store.Ms(was.Anchor), w.now, wasRaw)
		return said
	}
	if now.Rev <= b.rev { // for ever: else a step that was made for a deleted schedule would fit a later one of the same name
		broken(1, "revision %d after %d", now.Rev, b.rev)
	}
	b.rev = now.Rev
	paused := was.Paused
	if a.change.Pause != nil {
		paused = *a.change.Pause
	}
	if now.Paused != paused {
		broken(2, "after %s it is paused: %v", c.op, now.Paused)
	}
	if d := w.disk.get(keys.Schedules, scheduleName); a.change.Definition != "" && d != a.change.Definition {
		broken(9, "after %s it is %q; must be %q", c.op, d, a.change.Definition)
	}
	if c.op != "alter" && was.Rev > 0 && !now.Anchor.Equal(was.Anchor) {
		broken(2, "after %s slot zero is %v and was %v", c.op, now.Anchor, was.Anchor)
	}
	if c.op == "alter" && store.Ms(now.Anchor) <= w.now {
		broken(2, "slot zero is %v, and all slots up to now are settled: it is lost", now.Anchor)
	}
	if !a.change.Settled.IsZero() {
		if now.Slot.Before(a.change.Settled) {
			broken(1, "slots up to %v are settled, and the last run is %v", a.change.Settled, now.Slot)
		}
		b.allDealtWith(store.Ms(was.Anchor), w.now, wasRaw)
	}
	return said
}

// judgeKept: a retired or deleted schedule is kept as it was, and no other schedule is kept.
func (b *book) judgeKept(w *world, c call, a answer, before disk) {
	gone := c.op == "retire" || c.op == "delete"
	text := w.disk.get(keys.Retired, scheduleName)
	_, listed := w.disk.find(keys.Retirements, scheduleName)
	if is := text != ""; is != gone || is != listed {
		broken(2, "after %s it is kept as %q, and listed: %v", c.op, text, listed)
	}
	if !gone {
		return
	}
	last, _ := stored(before)
	last.Slot = a.change.Settled
	for _, x := range a.change.Ahead {
		for k := range x.Count {
			slot := x.Slot.Add(-time.Duration(k) * x.Every)
			if f := before.places()[task.SlotID(scheduleName, slot)]; store.Ms(slot) > w.now && f.place == waiting && !f.held {
				last.Runs--
			}
		}
	}
	lines := strings.SplitN(text, "\n", 3)
	mark := map[string]string{"retire": " retired v9", "delete": " deleted "}[c.op]
	if len(lines) < 3 || !strings.HasSuffix(lines[0], mark) || lines[1] != last.String() || lines[2] != before.get(keys.Schedules, scheduleName) {
		broken(2, "it was retired at %q, and is kept as %q", last.String(), text)
	}
}

// allDealtWith reports whether each slot from slot zero to a moment was pushed, or disposed of and noted.
func (b *book) allDealtWith(anchor, to int64, last string) {
	for _, s := range slots(anchor, anchor-1, to) {
		if b.fates[s] == 0 {
			broken(2, "slot %d is lost: last run %q", s, last)
		}
	}
}

// checkSlots: no slot up to the last run is lost, and no slot after it waits.
func (b *book) checkSlots(w *world) {
	last, raw := stored(w.disk)
	late := owed(behind(w.disk), raw)
	for s, f := range b.fates {
		if (f == owing) != slices.Contains(late, s) {
			broken(2, "slot %d: fate %d, and it is behind with %v", s, f, late)
		}
	}
	if raw == "" {
		if len(late) > 0 {
			broken(2, "there is no schedule, and it is behind with %v", late)
		}
		return
	}
	anchor, slot := store.Ms(last.Anchor), store.Ms(last.Slot)
	b.allDealtWith(anchor, slot, raw)
	for s, f := range b.fates {
		if f == pushed && s > slot && (s-anchor)%interval == 0 && s >= anchor {
			broken(1, "slot %d was pushed, and the last run is %d: it would be pushed again", s, slot)
		}
	}
	for id, e := range b.tasks {
		if _, at, ok := task.ParseSlotID(id); ok && e.place == waiting && last.Paused && store.Ms(at) > w.now {
			broken(2, "%s waits, and the schedule is paused", id)
		}
	}
}
