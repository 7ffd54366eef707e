package producer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/onbeat/onbeat/queue"
)

// declare makes the stored schedules those that this release declares: new ones are made, changed ones changed, and
// declared ones that are gone retired. What was applied by hand stays. An older release, or an older instance, that
// leads because the newer died changes nothing.
func (t *tenure) declare(ctx context.Context) error {
	if t.cfg.Declared == nil {
		return nil
	}
	declared := t.cfg.Declared()
	if declared == nil {
		return nil
	}
	may, err := t.reg.Declare(ctx, t.term)
	if err != nil {
		return err
	}
	if !may {
		t.log.Warn().Msg("a newer instance declared the schedules: leaving them as they are")
		return nil
	}
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
		if _, err := t.tick(ctx); err != nil { // what is settled, is settled up to now
			return err
		}
		changes, err := t.compare(declared, stored)
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

// compare lists what has to change for stored to say what is declared.
func (t *tenure) compare(declared []Schedule, stored map[string]queue.Stored) ([]queue.Change, error) {
	var changes []queue.Change
	named := make(map[string]bool, len(declared))
	for i := range declared {
		s := &declared[i]
		named[s.Name] = true
		c, err := replace(stored[s.Name], s, definitionHead{V: definitionVersion, Origin: Declared, Release: t.stay.Release}, t.clock.Now())
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
		c, err := remove(stored[name], "retired", t.clock.Now())
		if err != nil {
			return nil, err
		}
		changes = append(changes, *c)
	}
	return changes, nil
}
