package producer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// declare makes the stored schedules match what this release declares. It makes new ones, changes those that differ,
// retires those that are no longer declared, and brings back those that another release retired. Schedules that
// a person applied stay. While a newer instance that declared is present, an older one changes nothing, and asks again later.
//
// A change takes back the slots that were pushed ahead, so with many changes, slots are pushed in between.
func (t *term) declare(ctx context.Context, inv *inventory) error {
	t.askAgain = nil
	if inv.declared == nil {
		return nil
	}
	may, again, err := t.mayDeclare(ctx)
	if err != nil {
		return err
	}
	if !may {
		if !t.yields {
			t.log.Warn().Msg("a newer instance declared the schedules: this instance leaves them alone while that one is present, and for a minute after it is lost")
		}
		t.yields, t.askAgain = true, time.After(again)
		return nil
	}
	t.yields = false
	declared := inv.differing()
	retired, err := t.retired(ctx, declared, inv.stored)
	if err != nil {
		return err
	}
	changes, err := t.compare(declared, inv.stored, retired)
	if err != nil || len(changes) == 0 {
		return err
	}
	want := make(map[string]*Schedule, len(declared))
	for _, s := range declared {
		want[s.Name] = s
	}
	for part := range slices.Chunk(changes, declareChunk) {
		if err := t.declarePart(ctx, want, part); err != nil {
			return err
		}
	}
	t.log.Info().Int("schedules", len(changes)).Msg("declared schedules")
	return nil
}

func (t *term) mayDeclare(ctx context.Context) (may bool, again time.Duration, err error) {
	if t.insists {
		return t.reg.Redeclare(ctx, t.term)
	}
	return t.reg.Declare(ctx, t.term)
}

// tellRetired warns of the schedules that the release no longer declares: one left out by mistake would end in silence.
// Moved are the changes that were not made.
func (t *term) tellRetired(changes []queue.Change, moved []int) {
	var names []string
	for i := range changes {
		if changes[i].Retire && !slices.Contains(moved, i) {
			names = append(names, changes[i].Name)
		}
	}
	if len(names) > 0 {
		t.log.Warn().Int("retired", len(names)).Strs("schedules", names[:min(len(names), 20)]).
			Str("hint", "if one is missing by mistake, declare it again: it comes back on its grid").
			Msg("retired schedules that this release does not declare")
	}
}

// ask declares the schedules if this leader may by now. It is called every second, so it reads no schedule until it may.
func (t *term) ask(ctx context.Context) error {
	may, again, err := t.mayDeclare(ctx)
	if err == nil && !may {
		t.askAgain = time.After(again)
		return nil
	}
	if err != nil && !over(err) && !store.Retryable(err) && ctx.Err() == nil {
		t.lacking = err // takeStock tries again
		t.askAgain = nil
		return nil
	}
	if err != nil {
		return err
	}
	t.askAgain = nil
	return t.takeStock(ctx)
}

// declareChunk is how many schedules are changed before the slots that have come meanwhile are pushed. One call for them holds Redis for
// about ten milliseconds.
const declareChunk = 200

// declarePart changes some of the schedules that differ. Other callers, and this leader's own pushes, may have moved them
// since they were compared, so it reads and compares them again.
func (t *term) declarePart(ctx context.Context, want map[string]*Schedule, part []queue.Change) error {
	names := make([]string, len(part))
	var declared []*Schedule
	for i := range part {
		names[i] = part[i].Name
		if s, ok := want[names[i]]; ok {
			declared = append(declared, s)
		}
	}
	for tries := 0; ; tries++ {
		list, err := t.q.SchedulesNamed(ctx, names)
		if err != nil {
			return err
		}
		stored := make(map[string]queue.Stored, len(list))
		for _, st := range list {
			if !st.Absent() {
				stored[st.Name] = st
			}
		}
		if _, err := t.tick(ctx); err != nil { // the changes settle slots up to now
			return err
		}
		retired, err := t.retired(ctx, declared, stored)
		if err != nil {
			return err
		}
		changes, err := t.compare(declared, stored, retired)
		if err != nil {
			return err
		}
		_, moved, err := t.q.Change(ctx, t.term.Epoch, changes)
		if err != nil {
			return err
		}
		t.tellRetired(changes, moved) // at once: the next steps may fail
		if len(moved) == 0 {
			break
		}
		if tries == changeTries {
			return fmt.Errorf("declare %q: %w", changes[moved[0]].Name, task.ErrChanged)
		}
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	t.share(declared)
	if !t.open {
		return nil
	}
	return t.pushSoon(ctx)
}

// share lets the entries that say what is declared have no copy of it. Both are kept for as long as this instance leads.
func (t *term) share(declared []*Schedule) {
	head := t.head()
	for _, s := range declared {
		if e := t.entries[s.Name]; e != nil && e.head.says(Declared) && e.head.Release == head.Release && e.head.newer == nil && same(e.s, s) {
			e.head, e.s = head, s
		}
	}
}

// retired reads the declared schedules that are not stored because another release retired them.
func (t *term) retired(ctx context.Context, declared []*Schedule, stored map[string]queue.Stored) (map[string]queue.Retired, error) {
	var absent []string
	for _, s := range declared {
		if stored[s.Name].Absent() {
			absent = append(absent, s.Name)
		}
	}
	return t.q.Retired(ctx, absent)
}

// head is that of the definitions that this instance declares.
func (t *term) head() *definitionHead {
	return &definitionHead{V: definitionVersion, Origin: Declared, Release: t.session.Release}
}

// compare lists the changes that make the stored schedules match the declared ones.
func (t *term) compare(declared []*Schedule, stored map[string]queue.Stored, retired map[string]queue.Retired) ([]queue.Change, error) {
	head, now := t.head(), t.clock.Now()
	var changes []queue.Change
	named := make(map[string]bool, len(declared))
	for _, s := range declared {
		named[s.Name] = true
		st, ok := stored[s.Name]
		if !ok {
			st.Seal = t.q.Seal()
		}
		c, err := replace(st, s, *head, now)
		if c != nil || err != nil { // only a person writes over what cannot be read
			if why := closed(st); why != nil {
				t.log.Error().Err(why).Msg("cannot declare a schedule: leaving it as it is")
				continue
			}
		}
		if r, ok := retired[s.Name]; ok && err == nil {
			c, err = comeBack(r, c, s, now)
		}
		if err != nil {
			return nil, err
		}
		if c == nil {
			c = reseal(st)
		}
		if c != nil {
			changes = append(changes, *c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if named[name] {
			continue
		}
		d, err := decodeDefinition(name, stored[name].Definition)
		if err != nil {
			continue // unreadable: a newer release wrote it
		}
		if d.Origin != Declared {
			if c := reseal(stored[name]); c != nil {
				changes = append(changes, *c)
			}
			continue
		}
		c, err := retire(stored[name], t.session.Release, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, *c)
	}
	return changes, nil
}
