package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// slack is what a fault may be felt for after its stated w.bound(): round trips, and the moment until somebody looks.
const slack = 500 * time.Millisecond

// do carries out one step.
func (w *world) do(s *step) {
	if s.Process != "" {
		var n *node
		w.with(func() { n = w.nodes[s.Process] })
		if n != nil {
			w.doTo(n, s)
		}
		return
	}
	switch s.Do {
	case "away", "rewind", "empty", "hang", "full", "flush scripts", "clock":
		w.doToRedis(s)
	default:
		w.call(s)
	}
}

// doTo is a step that one process feels.
func (w *world) doTo(n *node, s *step) {
	lease := w.plan.longestLease()
	now, d := time.Now(), s.For.d()
	var there bool
	w.with(func() { there = n.crashed.IsZero() && n.ended.IsZero() })
	if !there {
		return
	}
	ill := func(extra time.Duration) {
		w.with(func() {
			w.disturb(now.Add(d+lease+slack+extra), s.Do+" "+n.plan.Name)
			n.ill = later2(n.ill, now.Add(d+2*lease+slack+extra))
			w.book.risk(n, now)
		})
	}
	switch s.Do {
	case "stop":
		w.with(func() {
			if n.stopping.IsZero() {
				n.stopping = now
			}
		})
		n.stop()
		w.awaitEnd(n)
	case "crash":
		w.with(func() {
			w.disturb(now.Add(lease+slack), "crash "+n.plan.Name)
			w.book.risk(n, now)
		})
		n.crash()
	case "freeze":
		ill(0)
		n.freeze(d)
		time.Sleep(d)
	case "cut":
		ill(2 * time.Second)
		w.with(func() { n.cut = true })
		n.link.set(func(l *link) {
			l.dropUp, l.dropDown = s.Name != "down", s.Name != "up"
			l.refuses = s.Name == "refuse"
		})
		time.Sleep(d)
		n.link.set(func(l *link) { l.dropUp, l.dropDown, l.refuses = false, false, false })
		w.with(func() { n.cut = false })
	case "break":
		ill(0)
		n.link.breakAll()
	case "slow":
		ill(0)
		n.link.set(func(l *link) { l.up, l.down = l.up+s.Back.d()/2, l.down+s.Back.d()/2 })
		time.Sleep(d)
		n.link.set(func(l *link) { l.up, l.down = l.up-s.Back.d()/2, l.down-s.Back.d()/2 })
	case "lie":
		w.with(func() { w.disturb(now.Add(lease/5+slack), "lie") })
		w.redis.lie(n.link, s.Name)
	case "deaf":
		w.with(func() { w.disturb(now.Add(d+lease/5+2*time.Second), "deaf "+n.plan.Name) })
		n.link.set(func(l *link) { l.deaf = true })
		time.Sleep(d)
		n.link.set(func(l *link) { l.deaf = false })
	default:
		w.t.Fatalf("plan %d: unknown step %q", w.plan.Seed, s.Do)
	}
}

// doToRedis is a step that all feel.
func (w *world) doToRedis(s *step) {
	lease := w.plan.longestLease()
	now, d := time.Now(), s.For.d()
	all := func(extra time.Duration, loses bool) {
		w.with(func() {
			w.disturb(now.Add(d+extra), s.Do)
			for _, n := range w.nodes {
				n.ill = later2(n.ill, now.Add(d+extra))
				w.book.risk(n, now)
			}
			from := now.Add(-s.Back.d() - lease)
			for _, l := range w.book.schedules {
				l.edge(from.Add(w.redis.offsetNow()), now.Add(d+extra).Add(w.redis.offsetNow()), s.Do)
			}
			if loses {
				w.forgive(now.Add(-s.Back.d()-slack), s.Do)
			}
		})
	}
	switch s.Do {
	case "away":
		all(2*lease+2*time.Second, false)
		w.redis.leave()
		time.Sleep(d)
		w.redis.comeBack()
	case "hang":
		all(2*lease+2*time.Second, false)
		w.redis.hang(true)
		time.Sleep(d)
		w.redis.hang(false)
	case "rewind":
		kept := w.redis.snapshot()
		time.Sleep(s.Back.d())
		now = time.Now()
		all(3*lease+3*time.Second, true)
		w.redis.leave()
		w.redis.restore(kept)
		time.Sleep(d)
		w.redis.comeBack()
	case "empty":
		all(3*lease+3*time.Second, true)
		w.redis.leave()
		w.redis.restore(nil)
		time.Sleep(d)
		w.redis.comeBack()
	case "full":
		all(2*time.Second, false)
		w.redis.with(func() { w.redis.full = true })
		time.Sleep(d)
		w.redis.with(func() { w.redis.full = false })
	case "flush scripts":
		w.redis.flushScripts()
	case "clock":
		all(max(s.Back.d(), -s.Back.d())+3*lease+3*time.Second, false)
		w.with(func() { w.forgive(now.Add(-slack), s.Do) })
		w.redis.with(func() { w.redis.offset += s.Back.d() })
	}
}

// forgive says that Redis may have lost what it was told since a moment: runs may be repeated, and tasks gone.
func (w *world) forgive(since time.Time, why string) {
	for _, d := range w.book.tasks {
		open := d.state != dutyOver
		for _, r := range d.runs {
			open = open || r.ended.After(since) || r.began.After(since)
		}
		if open || d.known.After(since) {
			d.loose, d.state = why, dutyOver
			d.forgiven = true
		}
	}
}

// call is a step of somebody outside.
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
	}
	l := w.lineOf(s.Name)
	schedules := w.operator.Schedules()
	var err error
	// What holds from now on is open until the call has returned.
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
		_, err = schedules.Apply(ctx, plan.schedule("", w.began))
		after = func(at time.Time) {
			fresh := !l.active && !l.paused
			l.plan, l.common = &plan, true
			l.rule = plan.rule(w.began)
			if fresh || l.anchor.IsZero() {
				l.anchor = time.Time{} // it is read
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
		_, err = schedules.Pause(ctx, s.Name)
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
		case errors.Is(err, queue.ErrNotFound):
		case err != nil:
			w.trace("call %s %s: %v", s.Do, s.Name, err)
			if after != nil { // it may have happened: nothing more is known
				l.unsure, l.active = true, false
			}
			passes := s.Do == "pause" || s.Do == "resume" || s.Do == "delete" // they take no memory
			if now := time.Now(); now.After(w.calm) && !w.redis.brokeIdle(err) || passes && errors.Is(err, queue.ErrFull) {
				w.blame("refused", "%s %s: %v", s.Do, s.Name, err)
			}
		}
	})
}

func (w *world) lineOf(name string) (l *timeline) {
	w.with(func() { l = w.book.line(name) })
	return l
}

// regrid reads a schedule's grid again, of which the interval was changed.
func (l *timeline) regrid(w *world) {
	grid, err := l.rule.Grid(l.anchor)
	if err != nil {
		w.t.Fatal(err)
	}
	l.grid = grid
}

func (w *world) trigger(ctx context.Context, l *timeline, s *step) error {
	id, err := w.operator.Schedules().Trigger(ctx, s.Name, nil)
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

// ask notes that a task is there: its call has returned.
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
			}
			if d.state == dutyOver { // asked for again, after it has ended
				d.earlier, d.runs, d.state = append(d.earlier, d.runs...), nil, dutyWaits
			}
			d.behind, d.priority, d.loose = true, task.Low, "its call has not returned"
		}
	})
	n, err := w.operator.Schedules().Backfill(ctx, s.Name, from, to, nil)
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
				Delay: s.For.d(), MaxAttempts: tries, Backoff: task.Backoff{Base: 100 * time.Millisecond, Cap: backoffMost}, Keep: -1,
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

// cancel asks for a task to be cancelled: one that runs, if any does.
func (w *world) cancel(ctx context.Context, s *step) {
	var pick *duty
	w.with(func() {
		for _, d := range w.book.tasks {
			if d.typ == "" || d.gone != "" || d.asked || d.state == dutyOver || d.known.IsZero() {
				continue
			}
			// The choice must not hang on the order of a map.
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
	where, err := w.operator.Queue().Cancel(ctx, pick.id, "planned", false)
	w.with(func() {
		w.trace("cancel %s: %s %v", pick.id, where, err)
		if err != nil {
			if pick.loose == "" {
				pick.loose = "a call to cancel it failed"
			}
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
