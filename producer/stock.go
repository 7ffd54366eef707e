package producer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// stock restores the schedules that Redis lost, then reads all schedules. While some cannot be restored they are lacking,
// and the knowledge of the term is not whole.
func (t *term) stock(ctx context.Context) (*inventory, error) {
	for {
		unrestored, err := t.without(ctx, t.restore(ctx, t.before, nil))
		if err != nil {
			return nil, err
		}
		inv, err := t.read(ctx)
		if err != nil {
			return nil, err
		}
		if unrestored {
			return inv, nil
		}
		// Redis may have lost schedules while they were read: they stay known here.
		lost, err := t.lacks(ctx, inv)
		if err != nil {
			return nil, err
		}
		if !lost {
			t.whole = true
			t.before, t.memory = memory{}, memory{} // the new knowledge counts from here on
			return inv, nil
		}
	}
}

// read reads all schedules as they are stored in Redis, beside the declarations of this release. The earlier knowledge is in
// t.before.
func (t *term) read(ctx context.Context) (*inventory, error) {
	var declared []Schedule
	if t.cfg.Declared != nil {
		declared = t.cfg.Declared()
	}
	inv := newInventory(declared)
	t.entries, t.plan, t.behind, t.whole, t.halves = make(map[string]*entry, len(declared)), nil, nil, false, false
	version, err := t.q.Schedules(ctx, func(list []queue.Stored) error {
		for _, st := range list {
			e, err := inv.take(st)
			t.hold(st, e, err)
		}
		t.progress.made()
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.version = version
	if err := t.complete(ctx, inv.stored); err != nil {
		return nil, err
	}
	// A schedule that changed during the read may have come as two halves that do not belong together.
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	return inv, nil
}

// complete makes schedules whole of which Redis has only the definition: as they are known here, or else as if they were
// new, on the grid of their rule.
func (t *term) complete(ctx context.Context, stored map[string]queue.Stored) error {
	var changes []queue.Change
	for _, st := range stored {
		if !st.Half() {
			continue
		}
		c, err := t.completed(ctx, st)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		c.Name, c.Expect = st.Name, st.Last
		changes = append(changes, *c)
	}
	if len(changes) == 0 {
		return nil
	}
	_, _, err := t.q.Change(ctx, 0, changes)
	return err
}

// completed returns the change that makes a schedule whole. Only its last run was overwritten. The pushed slots are still
// in their lane or have run, unless the tasks pushed ahead are gone too.
func (t *term) completed(ctx context.Context, st queue.Stored) (*queue.Change, error) {
	e := t.before.entries[st.Name]
	if e == nil {
		d, err := decodeDefinition(st.Name, st.Definition)
		if err != nil {
			return nil, nil // the error was reported
		}
		t.log.Error().Str("schedule", st.Name).Msg("redis lost the schedule's last run, and this instance does not know it: the schedule starts over and runs, even if it was paused")
		c := &queue.Change{Definition: st.Definition, Event: "schedule restored"}
		c.Anchor, c.FromNow = d.Schedule.anchor()
		return c, nil
	}
	now := t.clock.Now()
	if e.last.Slot.After(now) {
		exist, err := t.q.Exist(ctx, []string{task.SlotID(e.s.Name, e.last.Slot)})
		if err != nil {
			return nil, err
		}
		if !exist[0] {
			return e.restored(t.before.seen)
		}
	}
	c, err := e.restored(now) // the slots to come are pushed once more, as the same tasks
	if err == nil {
		c.Note = ""
	}
	return c, err
}

// lacks reports whether a known schedule that no caller deleted is missing from the schedules that were read. It takes in
// a schedule that a caller has made again since.
func (t *term) lacks(ctx context.Context, inv *inventory) (bool, error) {
	var names []string
	for name := range t.before.entries {
		if !inv.has(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	list, err := t.q.SchedulesNamed(ctx, names)
	if err != nil {
		return false, err
	}
	for _, st := range list {
		if st.Definition != "" {
			e, err := inv.take(st)
			t.hold(st, e, err)
		}
	}
	version, err := t.q.SchedulesVersion(ctx)
	if err != nil || version == t.before.version {
		return false, err
	}
	lost, err := t.lost(ctx, t.before.version, version, names)
	return len(lost) > 0, err
}

// restore restores the named schedules (nil: all) that this instance knows and Redis lost. It leaves a schedule that exists as
// it is.
func (t *term) restore(ctx context.Context, known memory, names []string) error {
	if len(known.entries) == 0 {
		return nil
	}
	version, err := t.q.SchedulesVersion(ctx)
	if err != nil || version == known.version {
		return err
	}
	if loss, ok := t.session.Loss(); ok && !loss.Kept.IsZero() { // known.seen may be from after the loss
		known.seen = minTime(known.seen, loss.Known)
	}
	if names == nil {
		names = slices.Sorted(maps.Keys(known.entries))
	}
	lost, err := t.lost(ctx, known.version, version, names)
	if err != nil {
		return err
	}
	var changes []queue.Change
	for _, st := range lost {
		e := known.entries[st.Name]
		if e == nil {
			continue
		}
		c, err := e.restored(known.seen)
		if err != nil {
			return err
		}
		if st.Last != "" { // only the definition is gone: Redis knows how far the schedule is
			c = &queue.Change{Name: c.Name, Definition: c.Definition, Event: c.Event}
		}
		c.Expect = st.Last
		changes = append(changes, *c)
	}
	if len(changes) == 0 {
		return nil
	}
	_, moved, err := t.q.Change(ctx, 0, changes)
	if err != nil {
		return err
	}
	t.log.Warn().Int("schedules", len(changes)-len(moved)).Msg("restored the schedules that redis lost")
	return nil
}

// lost names the schedules that are missing although no caller has deleted them since a version was known: for a deletion
// Redis would have a later version. If that version is so old that Redis may have forgotten the deletion, they count as
// deleted.
func (t *term) lost(ctx context.Context, known, version int64, names []string) (lost []queue.Stored, err error) {
	list, err := t.q.SchedulesNamed(ctx, names)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(st queue.Stored) bool { return st.Definition != "" })
	if len(list) == 0 {
		return nil, nil
	}
	absent := make([]string, len(list))
	for i, st := range list {
		absent[i] = st.Name
	}
	changed, err := t.q.ChangedAt(ctx, absent)
	if err != nil {
		return nil, err
	}
	old := version-known > queue.NamesKept.Milliseconds()
	for i, st := range list {
		if changed[i] <= known && !(changed[i] == 0 && old) {
			lost = append(lost, st)
		}
	}
	return lost, nil
}

// put takes in a schedule as it is stored in Redis now.
func (t *term) put(st queue.Stored) {
	e, err := newEntry(st)
	t.hold(st, e, err)
}

// hold takes in the entry that was made of a stored schedule; nil if there is none.
func (t *term) hold(st queue.Stored, e *entry, err error) {
	if st.Half() && t.entries[st.Name] != nil {
		t.halves = true // keep what is known of it: it is made whole from that
		return
	}
	t.hearts.set(st.Name, e)
	if old := t.entries[st.Name]; old != nil {
		old.next = time.Time{}
		t.plan.fix(old)
		delete(t.entries, st.Name)
	}
	if err != nil {
		t.log.Error().Err(err).Msg("cannot use a schedule: leaving it alone")
		return
	}
	if e != nil {
		t.entries[e.s.Name] = e
		if t.isAside(st) {
			e.next = time.Time{}
			return
		}
		t.plan.fix(e)
		t.owe(e)
	}
}
