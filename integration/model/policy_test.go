package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// scheduleName is the only schedule: it is due every interval, and of missed slots the latest runs.
const scheduleName = "s"

func slotTask(slot int64) *task.Task {
	t := task.New("job", nil, task.ID(slotID(slot)))
	t.Schedule, t.Slot = scheduleName, store.FromMs(slot)
	return t
}

func slotID(slot int64) string { return task.SlotID(scheduleName, store.FromMs(slot)) }

// became returns the last run after a step that was done: dropped slots do not count as run.
func became(s *queue.Step) string {
	last, err := queue.ParseLast(s.Becomes)
	if err != nil || s.Dropped == 0 {
		return s.Becomes
	}
	last.Runs = max(last.Runs-int64(s.Dropped), 0)
	return last.String()
}

// after returns the first slot after a moment.
func after(anchor, ms int64) int64 {
	if ms < anchor {
		return anchor
	}
	return anchor + ((ms-anchor)/interval+1)*interval
}

// slots returns the slots of a grid in (from, to].
func slots(anchor, from, to int64) []int64 {
	var list []int64
	for s := after(anchor, from); s <= to; s += interval {
		if len(list) > 10_000 {
			broken(2, "the grid of %d has far too many slots up to %d", anchor, to)
		}
		list = append(list, s)
	}
	return list
}

// rangeNote returns the line of the history for slots that were never pushed.
func rangeNote(list []int64, word string) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s@%d..%d %s %d x", scheduleName, list[0], list[len(list)-1], word, len(list))
}

// advance makes a leader's call that pushes the next slots up to the horizon. After a time with no leader it catches up: it
// takes out the pushed slots that no instance has claimed, all but the newest.
func (w *world) advance(c call, a *answer, term queue.Term) error {
	last, err := queue.ParseLast(c.last)
	if err != nil {
		return err
	}
	a.step = queue.Step{Name: scheduleName, Expect: c.last, Behind: c.behind, Remains: c.behind}
	switch c.op {
	case "put off", "repay", "give up":
		w.late(c.op, &a.step, &last)
	case "catchup":
		a.step.Becomes = c.last
		list := slots(store.Ms(last.Anchor), w.now-4*interval, min(w.now, store.Ms(last.Slot)))
		for _, s := range list[:max(len(list)-1, 0)] {
			lane := queue.LaneOf(slotTask(s))
			a.step.Drop = append(a.step.Drop, queue.Drop{Place: queue.Place{Lane: lane, ID: slotID(s)}, Due: store.FromMs(s)})
		}
	default:
		w.steps(&a.step, &last)
	}
	_, a.count, _, err = w.sendAdvance(term, a)
	if !a.moved && err == nil {
		a.last, a.behind = became(&a.step), a.step.Remains
	}
	return err
}

// steps pushes the slots that are due soon. Of several missed slots it pushes only the latest, and notes the others.
func (w *world) steps(s *queue.Step, last *queue.Last) {
	anchor, from := store.Ms(last.Anchor), store.Ms(last.Slot)
	missed := slots(anchor, from, w.now)
	if n := len(missed) - 1; n > 0 {
		s.Note = rangeNote(missed[:n], "missed")
		from = missed[n-1]
	}
	for _, slot := range slots(anchor, from, w.now+horizon) {
		p := queue.Push{Task: slotTask(slot)}
		if slot > w.now {
			p.Due = store.FromMs(slot)
		}
		s.Push = append(s.Push, p)
		last.Runs++
		from = slot
	}
	last.Slot = store.FromMs(from)
	s.Becomes = last.String()
}

// owed returns the slots that the schedule is behind with, as they lie in Redis beside its last run.
func owed(text, last string) []int64 {
	b, err := queue.ParseBehind(text)
	l, err2 := queue.ParseLast(last)
	if err = errors.Join(err, err2); err != nil {
		broken(2, "%v", err)
	}
	var list []int64
	for _, s := range b {
		list = append(list, slots(store.Ms(l.Anchor), store.Ms(s.From), store.Ms(s.To))...)
	}
	return list
}

// late makes a leader's call about missed slots that must all run. It puts off the slots that it has not dealt with. Then it
// pushes the first slot that was put off, or gives it up because it is too old.
func (w *world) late(op string, s *queue.Step, last *queue.Last) {
	b, err := queue.ParseBehind(s.Behind)
	if err != nil {
		broken(2, "%v", err)
	}
	if op == "put off" {
		missed := slots(store.Ms(last.Anchor), store.Ms(last.Slot), w.now)
		if n := len(missed); n > 0 {
			last.Slot = store.FromMs(missed[n-1])
			b = append(b, queue.Span{From: store.FromMs(missed[0] - 1), To: last.Slot})
		}
		s.Becomes, s.Remains = last.String(), b.String()
		return
	}
	first := owed(s.Behind, s.Expect)[0]
	b[0].From = store.FromMs(first)
	if b[0].From.Equal(b[0].To) {
		b = b[1:]
	}
	s.Remains = b.String()
	if op == "give up" {
		s.Note = rangeNote([]int64{first}, "missed")
	} else {
		s.Push = []queue.Push{{Task: slotTask(first)}}
		last.Runs++
	}
	s.Becomes = last.String()
}

func (w *world) sendAdvance(term queue.Term, a *answer) (time.Time, int, []int, error) {
	steps := []queue.Step{a.step}
	now, dropped, moved, err := w.q.Advance(w.ctx, term, steps)
	a.step, a.moved = steps[0], len(moved) > 0
	return now, dropped, moved, err
}

// change makes a call that changes the schedule, for the client or for a leader that declares.
func (w *world) change(c call, a *answer) error {
	last, err := queue.ParseLast(c.last)
	if err != nil {
		return err
	}
	x := queue.Change{Name: scheduleName, Expect: c.last, Event: c.op}
	yes, no := true, false
	anchor := store.Ms(last.Anchor)
	var unpushed []int64
	if c.last != "" {
		unpushed = slots(anchor, store.Ms(last.Slot), w.now)
		var ahead []time.Time
		for _, s := range slots(anchor, w.now-interval, store.Ms(last.Slot)) {
			ahead = append(ahead, store.FromMs(s))
		}
		slices.Reverse(ahead)
		x.Lane, x.Ahead = queue.LaneOf(slotTask(0)), queue.RunsOf(ahead)
	}
	switch c.op {
	case "make":
		x.Definition, x.Anchor.In = "by hand", true
	case "pause":
		x.Pause = &yes
	case "resume":
		x.Pause, x.Settled, x.Note, x.Ahead = &no, store.FromMs(w.now), rangeNote(unpushed, "paused"), nil
	case "delete":
		x.Delete, x.Settled, x.Behind, x.Note = true, store.FromMs(w.now), c.behind, rangeNote(unpushed, "deleted")
	case "retire":
		x.Retire, x.By, x.Settled, x.Behind, x.Note = true, "v9", store.FromMs(w.now), c.behind, rangeNote(unpushed, "retired")
	case "restore":
		return w.restore(c, a)
	case "alter": // the schedule gets a new grid
		x.Definition, x.Anchor.In, x.Settled, x.Note = "altered", true, store.FromMs(w.now), rangeNote(unpushed, "changed")
		x.Behind = c.behind
	case "define":
		x.Definition = "declared by " + c.release
		if c.last == "" {
			x.Anchor.In = true
		}
	default:
		return fmt.Errorf("nobody knows how to %s", c.op)
	}
	if x.Behind != "" {
		for _, s := range owed(x.Behind, c.last) {
			x.Note = strings.TrimPrefix(x.Note+"\n"+rangeNote([]int64{s}, "forgone"), "\n")
		}
	}
	return w.sendChange(c, a, x)
}

// restore brings a retired or deleted schedule back as it was, and notes the slots since then.
func (w *world) restore(c call, a *answer) error {
	found, err := w.q.Retired(w.ctx, []string{scheduleName})
	if err == nil && len(found) == 0 {
		found, err = w.q.Deleted(w.ctx, []string{scheduleName})
	}
	a.last = found[scheduleName].Last
	last, err2 := queue.ParseLast(a.last)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	since := slots(store.Ms(last.Anchor), store.Ms(last.Slot), w.now)
	return w.sendChange(c, a, queue.Change{
		Name: scheduleName, Expect: c.last, Event: c.op, Definition: found[scheduleName].Definition, Pause: &last.Paused,
		Runs: last.Runs, Anchor: queue.Anchor{At: last.Anchor}, Settled: store.FromMs(w.now), Note: rangeNote(since, "retired"),
	})
}

func (w *world) sendChange(c call, a *answer, x queue.Change) error {
	a.change = x
	_, moved, err := w.q.Change(w.ctx, c.epoch, []queue.Change{x})
	a.moved = len(moved) > 0
	return err
}
