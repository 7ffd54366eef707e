package producer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/queue"
)

// declare makes the stored schedules those that this release declares: new ones are made, changed ones changed,
// declared ones that are gone retired, and those that another release retired go on. What was applied by hand stays. An
// older release, or an older instance, changes nothing while a newer one that declared is present: it asks again.
func (t *tenure) declare(ctx context.Context) error {
	t.again = nil
	if t.cfg.Declared == nil {
		return nil
	}
	declared := t.cfg.Declared()
	if declared == nil {
		return nil
	}
	may, again, err := t.reg.Declare(ctx, t.term)
	if err != nil {
		return err
	}
	if !may {
		if !t.refused {
			t.log.Warn().Msg("a newer instance declared the schedules: leaving them as they are while it is present")
		}
		t.refused, t.again = true, time.After(again)
		return nil
	}
	t.refused = false
	for tries := 0; ; tries++ {
		stored := map[string]queue.Stored{}
		if _, err := t.q.Schedules(ctx, func(list []queue.Stored) error {
			for _, st := range list {
				stored[st.Name] = st
			}
			return nil
		}); err != nil {
			return err
		}
		if err := t.tick(ctx); err != nil { // what is settled, is settled up to now
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
		if len(changes) == 0 {
			return nil
		}
		_, moved, err := t.q.Change(ctx, t.term.Epoch, changes)
		if err != nil {
			return err
		}
		t.log.Info().Int("schedules", len(changes)-len(moved)).Msg("declared schedules")
		if len(moved) == 0 {
			return nil
		}
		if tries == changeTries {
			return fmt.Errorf("declare %q: %w", changes[moved[0]].Name, queue.ErrChanged)
		}
	}
}

// retired reads what those were that are declared, and not there because another release retired them.
func (t *tenure) retired(ctx context.Context, declared []Schedule, stored map[string]queue.Stored) (map[string]queue.Retired, error) {
	var absent []string
	for i := range declared {
		if stored[declared[i].Name].Absent() {
			absent = append(absent, declared[i].Name)
		}
	}
	return t.q.Retired(ctx, absent)
}

// compare lists what has to change for stored to say what is declared.
func (t *tenure) compare(declared []Schedule, stored map[string]queue.Stored, retired map[string]queue.Retired) ([]queue.Change, error) {
	head, now := definitionHead{V: definitionVersion, Origin: Declared, Release: t.stay.Release}, t.clock.Now()
	var changes []queue.Change
	named := make(map[string]bool, len(declared))
	for i := range declared {
		s := &declared[i]
		named[s.Name] = true
		c, err := replace(stored[s.Name], s, head, now)
		if r, ok := retired[s.Name]; ok && err == nil {
			c, err = comeBack(r, c, s, now)
		}
		if err != nil {
			return nil, err
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
		if err != nil || d.Origin != Declared {
			continue // unreadable: a newer release's own
		}
		c, err := retire(stored[name], t.stay.Release, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, *c)
	}
	return changes, nil
}
