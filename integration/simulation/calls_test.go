package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// call carries out a step of a caller outside the instances.
func (w *world) call(s *step) {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	before := w.redis.now()
	switch s.Do {
	case "enqueue":
		w.enqueue(ctx, s)
		return
	case "cancel":
		w.cancel(ctx, s)
		return
	case "retry":
		w.retry(ctx)
		return
	}
	l := w.lineOf(s.Name)
	schedules := w.schedules
	var err error
	// Until the call has returned, it is not known what holds.
	w.with(func() { l.edge(before, before.Add(time.Hour), s.Do) })
	var after func(at time.Time)
	switch s.Do {
	case "apply", "change":
		plan := *w.plan.timetable(s.Name)
		var was timetable
		w.with(func() { was = *l.plan })
		if s.Do == "change" {
			plan = was
		}
		if s.Does != nil {
			plan.Does = *s.Does
		}
		if s.Every > 0 {
			plan.Every = s.Every
		}
		sameGrid := plan.Every == was.Every
		w.with(func() { w.book.change(l, &plan) })
		_, err = schedules.Apply(ctx, plan.schedule("", w.began))
		after = func(at time.Time) {
			fresh := !l.active && !l.paused
			l.other, l.plan, l.common = l.plan, &plan, true
			l.rule = plan.rule(w.began)
			if fresh || l.anchor.IsZero() {
				l.anchor = time.Time{} // the watch reads it
				return
			}
			if !sameGrid {
				l.regrid(w)
			}
			if l.active {
				l.begin(at)
			}
		}
	case "pause":
		_, err = schedules.Pause(ctx, s.Name, "")
		after = func(time.Time) { l.active, l.paused = false, true }
	case "resume":
		_, err = schedules.Resume(ctx, s.Name)
		after = func(at time.Time) {
			if l.paused {
				l.paused = false
				l.begin(at)
			}
		}
	case "delete":
		err = schedules.Delete(ctx, s.Name)
		after = func(time.Time) { l.active, l.paused, l.common, l.anchor = false, false, false, time.Time{} }
	case "trigger":
		err = w.trigger(ctx, l, s)
	case "backfill":
		err = w.backfill(ctx, l, s)
	default:
		w.t.Fatalf("plan %d: unknown step %q", w.plan.Seed, s.Do)
	}
	at := w.redis.now()
	w.with(func() {
		e := &l.edges[len(l.edges)-1]
		for i := range l.edges {
			if l.edges[i].to.Sub(l.edges[i].from) > time.Hour && l.edges[i].why == s.Do {
				e = &l.edges[i]
			}
		}
		e.to = at.Add(2 * time.Millisecond)
		if s.Do == "trigger" || s.Do == "backfill" {
			e.to = e.from // the grid goes on
			for _, d := range l.duties {
				if d.loose == s.Do {
					d.loose = ""
				}
			}
		}
		switch {
		case err == nil && after != nil:
			after(at)
		case errors.Is(err, task.ErrNotFound):
		case err != nil:
			w.trace("call %s %s: %v", s.Do, s.Name, err)
			if after != nil { // the call may have taken effect: its outcome is unknown
				l.unsure, l.active = true, false
			}
			passes := s.Do == "pause" || s.Do == "resume" || s.Do == "delete" // these take no memory
			if now := time.Now(); now.After(w.calm) && !w.redis.brokeIdle(err) || passes && errors.Is(err, task.ErrFull) {
				w.blame("refused", "%s %s: %v", s.Do, s.Name, err)
			}
		}
	})
}

func (w *world) lineOf(name string) (l *timeline) {
	w.with(func() { l = w.book.line(name) })
	return l
}

// regrid reads a schedule's grid again, after its interval was changed.
func (l *timeline) regrid(w *world) {
	grid, err := l.rule.Grid(l.anchor)
	if err != nil {
		w.t.Fatal(err)
	}
	l.grid = grid
}

func (w *world) trigger(ctx context.Context, l *timeline, s *step) error {
	id, err := w.schedules.Trigger(ctx, s.Name, nil)
	if err != nil {
		return err
	}
	w.with(func() {
		d := w.book.duty(id)
		w.ask(d, func() { w.book.fill(d, l, time.Time{}) })
		if d.key != "" {
			d.loose = "overlap"
		}
	})
	return nil
}

// ask notes that a task exists, because the call that adds it has returned.
func (w *world) ask(d *duty, fill func()) {
	if d.typ == "" {
		fill()
	}
	d.behind = true
	d.known = time.Now()
	d.due = later2(d.due, d.known)
	w.book.asked++
	if d.state == dutyWaits {
		w.book.waiting = append(w.book.waiting, d)
	}
}

func (w *world) backfill(ctx context.Context, l *timeline, s *step) error {
	var anchor time.Time
	w.with(func() { anchor = l.anchor })
	if anchor.IsZero() || l.plan.Every == 0 {
		return nil
	}
	every := l.plan.Every.d()
	to := anchor.Add(w.redis.now().Sub(anchor).Truncate(every))
	if to.After(w.redis.now()) { // it starts later
		to = to.Add(-every)
	}
	from := to.Add(-time.Duration(s.N-1) * every)
	asked := map[string]time.Time{}
	for slot := from; !slot.After(to); slot = slot.Add(every) {
		asked[task.SlotID(s.Name, slot)+"+backfill"] = slot
	}
	w.with(func() {
		for id, slot := range asked {
			d := w.book.duty(id)
			if d.typ == "" {
				w.book.fill(d, l, slot)
			} else {
				w.book.doubt(d, l.plan) // it may be the task of an earlier backfill
			}
			if d.state == dutyOver { // it had ended, and is asked for again
				d.earlier, d.runs, d.state, d.gone = append(d.earlier, d.runs...), nil, dutyWaits, ""
			}
			d.first = l.rule.JitterFor(l.name, slot)
			d.due = d.first.Add(-w.redis.offsetNow())
			d.behind, d.priority, d.loose, d.anew, d.counted = true, task.Low, "its call has not returned", time.Now(), time.Now()
		}
	})
	got, err := w.schedules.Backfill(ctx, s.Name, producer.Backfilling{From: from, To: to, Again: true})
	n := got.Added
	if err != nil {
		return err
	}
	w.with(func() {
		for id := range asked {
			d := w.book.duty(id)
			if n == len(asked) && d.loose == "its call has not returned" {
				d.loose = ""
			}
			w.ask(d, func() {})
		}
	})
	return nil
}

func (w *world) enqueue(ctx context.Context, s *step) {
	does := behaviour{}
	if s.Does != nil {
		does = *s.Does
	}
	payload, err := json.Marshal(does)
	if err != nil {
		w.t.Fatal(err)
	}
	tries := max(s.Tries, 1)
	var list []*task.Task
	var duties []*duty
	first := w.redis.now().Add(s.For.d())
	w.with(func() {
		for i := range s.N {
			t := &task.Task{
				ID: fmt.Sprintf("%s-%d", s.Name, i), Type: s.Type, Payload: payload, Queue: s.Queue, Priority: priorityOf(s.Prio),
				Delay: s.For.d(), MaxAttempts: tries, Backoff: task.Backoff{Base: backoffLeast, Cap: backoffMost}, Keep: -1,
			}
			if s.Key != "" {
				t.Key, t.KeyLimit = s.Key, max(s.Limit, 1)
			}
			if s.Unique {
				t.UniqueKey, t.UniqueFor = s.Name, time.Minute
			}
			d := w.book.duty(t.ID)
			d.typ, d.queue, d.priority, d.tries, d.does = t.Type, t.QueueName(), t.Priority, tries, does
			d.first, d.due, d.loose = first, time.Now().Add(s.For.d()), "its call has not returned"
			if s.Key != "" {
				d.key, d.limit = s.Key, max(s.Limit, 1)
			}
			list, duties = append(list, t), append(duties, d)
		}
	})
	results, err := w.operator.EnqueueAll(ctx, list)
	w.with(func() {
		now := time.Now()
		for i, d := range duties {
			switch {
			case i >= len(results):
				w.trace("enqueue %s: %v", d.id, err)
				if now.After(w.calm) && !w.redis.brokeIdle(err) {
					w.blame("refused", "enqueue %s: %v", d.id, err)
				}
			case results[i].Err != nil:
				d.gone, d.goneAt, d.state = "refused", now, dutyOver
			default:
				if d.loose == "its call has not returned" {
					d.loose = ""
				}
				d.due = later2(d.due, now.Add(s.For.d()))
				w.ask(d, func() {})
			}
		}
	})
}

const cancelFailed = "a call to cancel it failed"

// mayBeCancelled reports whether a caller cancelled a task, or tried to in a call whose outcome is not known.
func (d *duty) mayBeCancelled() bool { return d.gone != "" || d.loose == cancelFailed }

// cancel asks to cancel a task: one that runs, if there is one.
func (w *world) cancel(ctx context.Context, s *step) {
	var pick *duty
	w.with(func() {
		for _, d := range w.book.tasks {
			if d.typ == "" || d.gone != "" || d.asked || d.state == dutyOver || d.known.IsZero() {
				continue
			}
			// The choice must not depend on the order of a map.
			better := pick == nil || (d.state == dutyRuns) != (pick.state == dutyRuns) && d.state == dutyRuns ||
				d.state == pick.state && d.id < pick.id
			if better {
				pick = d
			}
		}
		if pick != nil {
			pick.asked = true
		}
	})
	if pick == nil {
		return
	}
	where, err := w.queue.Cancel(ctx, pick.id, "planned", false)
	w.with(func() {
		w.trace("cancel %s: %s %v", pick.id, where, err)
		switch {
		case errors.Is(err, task.ErrNotFound):
			if pick.loose == "" {
				pick.loose = "a caller did not find it"
			}
			return
		case err != nil:
			pick.loose = cancelFailed // whatever excused it before: it may be cancelled
			return
		}
		if where == task.Due || where == task.Running {
			pick.gone, pick.goneAt = "cancelled ("+string(where)+")", time.Now()
		}
		if pick.state == dutyWaits {
			pick.state = dutyOver
		}
	})
}
