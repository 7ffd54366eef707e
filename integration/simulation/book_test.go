package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// book has everything that was asked for, and how far it has come. The world's mu guards it.
type book struct {
	world     *world
	schedules map[string]*timeline
	tasks     map[string]*duty
	waiting   []*duty // duties that should run now or later, as far as is known; pruned now and then
	types     map[string]*room
	keys      map[string]*room
	slots     int
	asked     int
}

// room counts the running tasks of a type or key that has a limit.
type room struct {
	runs   int
	onTime int       // of those, the ones that are not behind
	since  time.Time // when the number last went down: there may be room since
}

// dutyState is where a task is, as the handlers show it.
type dutyState int

const (
	dutyWaits dutyState = iota
	dutyRuns
	dutyOver
)

// duty is one task that should run.
type duty struct {
	id       string
	line     *timeline // its schedule, or nil
	slot     time.Time
	behind   bool // a slot that was backfilled, or a run that is not on the grid
	typ      string
	queue    string
	priority task.Priority
	key      string
	limit    int
	tries    int // how many of its runs may begin
	most     int // the same, if its schedule was changed about when it was pushed: then it may have either number
	does     behaviour

	state  dutyState
	known  time.Time // when Redis got it
	due    time.Time // from when on it may begin
	first  time.Time // the same by the clock of Redis: it must not begin earlier
	loose  string    // why the judge cannot demand that it begins in time, or at all; "" if it can
	lost   int       // attempts that may have been lost before they began
	gone   string    // why it must not begin any more
	goneAt time.Time
	runs   []*run

	idle      *node     // a node that could have taken it at the last look
	idleSince time.Time // that node could have taken it at each look since
	idleLook  int
	earlier   []*run    // of an earlier time that it was asked for
	anew      time.Time // when it was last asked for again: a run that ended since may have begun before that
	counted   time.Time // its attempts may have been counted from zero since
	looked    bool      // the watch looked at it when it was due
	held      bool      // something other than its key then kept it from beginning
	sibling   bool      // another slot of its schedule began while it was held, so overlap may have dropped it
	asked     bool      // a caller asked to cancel it
	revived   time.Time // when a caller retried it, after it was dead
	blamed    bool
	passed    []passed // runs that were claimed while it waited
	forgiven  bool     // Redis may have lost its record
}

// timeline is a schedule, with its history.
type timeline struct {
	name   string
	plan   *timetable
	other  *timetable // the one before its last change or, until it is known that a change has taken effect, the one that may be in force
	rule   schedule.Rule
	grid   schedule.Grid
	anchor time.Time // by the clock of Redis
	common bool      // every process declares it, or it was applied: it is always known whether it is in force
	active bool
	from   time.Time // of the present span, by the clock of Redis
	made   time.Time // the book has its slots up to here
	duties []*duty   // its slots
	edges  []edge
	paused bool
	seen   bool // the watch has found it in Redis
	stale  bool // it may have been made anew, so its anchor must be read again
	unsure bool // a call about it had no known outcome, so it is not judged any more
}

// edge is a time in which a schedule's rule changed. Its slots may follow the rule before or the rule after.
type edge struct {
	from, to time.Time // by the clock of Redis
	why      string
}

func (b *book) line(name string) *timeline {
	l := b.schedules[name]
	if l == nil {
		l = &timeline{name: name, plan: b.world.plan.timetable(name)}
		b.schedules[name] = l
	}
	return l
}

// edge notes a change of a schedule. The slots within it, and those that wait, are not judged by one rule.
func (l *timeline) edge(from, to time.Time, why string) {
	l.edges = append(l.edges, edge{from.Add(-2 * time.Millisecond), to.Add(2 * time.Millisecond), why})
	for _, d := range l.duties {
		if d.state == dutyWaits && !d.slot.Before(from.Add(-2*time.Millisecond)) && d.loose == "" {
			d.loose = why
		}
	}
}

func (l *timeline) onEdge(slot time.Time) string {
	for _, e := range l.edges {
		if !slot.Before(e.from) && !slot.After(e.to) {
			return e.why
		}
	}
	return ""
}

// begin puts a schedule in force: its slots after a moment, by the clock of Redis, must run.
func (l *timeline) begin(from time.Time) { l.active, l.from, l.made = true, from, from }

// write adds the slots that have come due by now.
func (b *book) write(now time.Time, offset time.Duration) {
	there := now.Add(offset)
	for _, l := range b.schedules {
		if !l.active || !l.common || l.anchor.IsZero() || l.stale {
			continue
		}
		for slot := l.grid.Next(l.made.Add(-time.Nanosecond)); !slot.IsZero() && !slot.After(there); slot = l.grid.Next(slot) {
			l.made = slot.Add(time.Millisecond)
			due := l.rule.JitterFor(l.name, slot).Add(-offset)
			d := b.duty(task.SlotID(l.name, slot))
			if d.line == nil { // else its run has begun already
				b.fill(d, l, slot)
			}
			l.duties = append(l.duties, d)
			b.slots++
			d.known, d.due, d.first = now, later2(due, now), l.rule.JitterFor(l.name, slot)
			if d.loose == "" {
				d.loose = l.onEdge(slot)
			}
			if l.plan.MaxRuns > 0 {
				d.loose = "max_runs"
			}
			if x := b.keys[d.key]; d.key != "" && d.loose == "" && x != nil && (x.onTime > 0 || now.Sub(x.since) < 50*time.Millisecond || now.Before(b.world.calm)) {
				d.loose = "overlap"
			}
			if d.state == dutyWaits {
				b.waiting = append(b.waiting, d)
			}
		}
	}
}

// nextSlot returns when the next slot of any schedule is due, by the bubble's clock.
func (b *book) nextSlot(offset time.Duration) time.Time {
	var first time.Time
	for _, l := range b.schedules {
		if !l.active || !l.common || l.anchor.IsZero() || l.stale {
			continue
		}
		at := l.grid.Next(l.made.Add(-time.Nanosecond))
		if at.IsZero() {
			continue
		}
		if at = at.Add(-offset); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

func (b *book) duty(id string) *duty {
	d := b.tasks[id]
	if d == nil {
		d = &duty{id: id}
		b.tasks[id] = d
	}
	return d
}

// fill sets the fields of a slot's task.
func (b *book) fill(d *duty, l *timeline, slot time.Time) {
	d.line, d.slot, d.typ, d.queue = l, slot, l.plan.Type, queueName(l.plan.Queue)
	d.priority = priorityOf(l.plan.Priority)
	d.first = slot
	d.tries, d.does = b.tries(l, l.plan, slot), l.plan.Does
	pushed := slot
	if d.id != task.SlotID(l.name, slot) { // a trigger or a backfill
		pushed = b.world.redis.now()
	}
	if l.other != nil && (l.unsure || l.onEdge(pushed) != "") {
		b.doubt(d, l.other)
	}
	if l.plan.Overlap != "" && l.plan.Overlap != schedule.OverlapAllow {
		d.key, d.limit = "schedule of "+l.name, 1
	}
}

// change notes what a schedule may be from now on. Its slots that wait may be pushed by the one timetable or the other.
func (b *book) change(l *timeline, p *timetable) {
	l.other = p
	for _, d := range l.duties {
		if d.state == dutyWaits && len(d.runs) == 0 {
			b.doubt(d, p)
		}
	}
}

// doubt notes that a task may have as many attempts as another timetable of its schedule gives.
func (b *book) doubt(d *duty, p *timetable) {
	n := b.tries(d.line, p, d.slot)
	d.tries, d.most = min(d.tries, n), max(d.tries, d.most, n)
}

// tries is how many runs of a slot may begin by a timetable of its schedule; the zero slot is that of a trigger of now. If the timetable
// does not say, the longest delays up to the last of them add up to half of the gap to the next slot. That gap does not depend on slot
// zero, which may not be known yet, or be later than a slot that is backfilled.
func (b *book) tries(l *timeline, p *timetable, slot time.Time) int {
	if p.Attempts > 0 {
		return p.Attempts
	}
	gap := 2 * time.Hour
	if slot.IsZero() {
		now, grid := time.Now(), l.grid
		if l.anchor.IsZero() {
			grid = p.gridFrom(now, b.world.began)
		}
		gap = grid.Gap(now)
	} else if next := p.gridFrom(slot, b.world.began).Next(slot); !next.IsZero() {
		gap = next.Sub(slot)
	}
	n := 1
	for delay, left := backoffLeast, min(gap/2, time.Hour)-backoffLeast; left >= 0; left -= delay {
		delay = min(2*delay, backoffMost)
		n++
	}
	return min(max(n, 3), 100)
}

// dutyOf finds the duty of a run. A run that no caller or schedule asked for is a fault; the book gets a duty for it too.
func (b *book) dutyOf(t *task.Task) *duty {
	d := b.tasks[t.ID]
	if d != nil && d.typ != "" {
		return d
	}
	d = b.duty(t.ID)
	d.typ, d.queue, d.priority, d.tries = t.Type, t.QueueName(), t.Priority, t.AttemptsAllowed()
	if t.Schedule == "" {
		b.world.blame("unasked", "task %s runs, and nobody asked for it", t.ID)
		return d
	}
	l := b.line(t.Schedule)
	if l.plan == nil {
		b.world.blame("unasked", "a schedule %s that nobody has runs", t.Schedule)
		return d
	}
	b.fill(d, l, t.Slot)
	d.behind = strings.Contains(t.ID, "+") || t.Slot.IsZero()
	return d
}

// occupy counts runs of a type and a key.
func (b *book) occupy(r *run, n int, now time.Time) {
	for _, at := range []struct {
		rooms *map[string]*room
		name  string
	}{{&b.types, r.duty.typ}, {&b.keys, r.duty.key}} {
		if at.name == "" {
			continue
		}
		if *at.rooms == nil {
			*at.rooms = map[string]*room{}
		}
		x := (*at.rooms)[at.name]
		if x == nil {
			x = &room{}
			(*at.rooms)[at.name] = x
		}
		x.runs += n
		if !r.duty.behind {
			x.onTime += n
		}
		if n < 0 {
			x.since = now
		}
	}
}

// next decides what a task should do after a run.
func (b *book) next(r *run, now time.Time) {
	d := r.duty
	if d.runs[len(d.runs)-1] != r {
		return // this run was lost, and other instances have run the task since
	}
	again := func(at time.Time) {
		d.state, d.due = dutyWaits, at
		b.waiting = append(b.waiting, d)
	}
	lease := b.world.plan.longestLease()
	left := r.attempt < d.tries
	d.state = dutyOver
	switch r.how {
	case endGood, endCancelled:
	case endBad:
		switch {
		case !left:
		case r.does.Retry > 0 && !r.does.Panics:
			again(now.Add(r.does.Retry.d()))
		default:
			again(now.Add(backoffMost))
		}
	case endDrained:
		again(now.Add(50 * time.Millisecond))
	case endLost, endCrashed:
		if left && d.lost+1 < d.tries {
			again(now.Add(lease + lease/5 + time.Second))
		} else if left {
			d.loose = "its attempts may be used up"
			again(now.Add(lease + time.Second))
		}
	}
	if d.gone != "" {
		d.state = dutyOver
	}
}

// The first and the longest delay before the next attempt of a task that sets no delay itself.
const (
	backoffLeast = 100 * time.Millisecond
	backoffMost  = time.Second
)

// prune keeps only the duties that still wait.
func (b *book) prune() {
	b.waiting = slices.DeleteFunc(b.waiting, func(d *duty) bool { return d.state != dutyWaits })
}

// risk notes that a process that is lost now may have held claims whose runs had not begun.
func (b *book) risk(n *node, now time.Time) {
	for _, d := range b.waiting {
		if d.state == dutyWaits && !d.due.After(now.Add(50*time.Millisecond)) && slices.Contains(n.plan.Types, d.typ) {
			used := 0
			if n := len(d.runs); n > 0 {
				used = d.runs[n-1].attempt
			}
			if d.lost++; used+d.lost >= d.tries && d.loose == "" {
				d.loose = "its attempts may be used up"
			}
		}
	}
}

func queueName(s string) string {
	if s == "" {
		return task.DefaultQueue
	}
	return s
}

func priorityOf(s string) task.Priority {
	if s == "" {
		return task.Normal
	}
	p, err := task.ParsePriority(s)
	if err != nil {
		panic(err)
	}
	return p
}

func (d *duty) String() string {
	return fmt.Sprintf("%s (type %s, queue %s, %s, due %s)", d.id, d.typ, d.queue, d.priority, d.due.Format("15:04:05.000"))
}
