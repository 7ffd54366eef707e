package producer

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// readDefinition reads a stored definition. If it is encrypted and does not open here, the schedule carries the encrypted payload in
// place of the payload: its slots are pushed all the same, and an instance that has the key runs them.
func readDefinition(st queue.Stored) (*definition, error) {
	return openDefinition(st.Name, st.Definition, st.Seal)
}

func openDefinition(name, text string, keys *seal.Keys) (*definition, error) {
	d, err := decodeDefinition(name, text)
	if err != nil || d.sealed == nil {
		return d, err
	}
	if plain, paths, err := keys.Open(d.owner(), d.sealed); err == nil {
		d.Payload, d.Secret, d.sealed = plain, secret.Join(d.Secret, paths), nil
	}
	return d, nil
}

// owner is the owner for which the payload of a definition is sealed.
func (s *Schedule) owner() seal.Owner { return seal.Schedule(s.Name, s.Task) }

// sealedWith returns the definition as it is stored: with its payload encrypted, if a key seals.
func (d definition) sealedWith(keys *seal.Keys) definition {
	box := d.sealed
	if len(d.Payload) > 0 {
		box = keys.Seal(d.owner(), d.Payload, d.Secret)
	}
	d.V, d.Sealed = definitionVersion, box
	if box != nil {
		d.V, d.Payload = sealedVersion, nil
	}
	return d
}

// checkOpens refuses to write over a payload that this process cannot read for want of its key. A write would store an encrypted
// payload in the clear, and could not tell whether it changes.
func (d *definition) checkOpens(keys *seal.Keys) error {
	if d.sealed == nil || keys.Has(d.sealed.Key) {
		return nil
	}
	return fmt.Errorf("schedule %q: %w: key %q", d.Name, task.ErrNoKey, d.sealed.Key)
}

// closed says why a stored definition does not open here: its key is not here, or another one is under its ID. It is nil if it opens.
func closed(st queue.Stored) error {
	d, err := readDefinition(st)
	if err != nil || d.sealed == nil {
		return nil
	}
	return fmt.Errorf("schedule %q: %s", st.Name, d.Unopened())
}

// reseal returns the change that stores a definition as the keys seal today, or nil if it is stored so. Nothing else changes.
func reseal(st queue.Stored) *queue.Change {
	if st.Seal == nil || st.Half() || st.Absent() {
		return nil
	}
	d, err := readDefinition(st)
	if err != nil || !d.stale(st.Seal) {
		return nil
	}
	next := d.sealedWith(st.Seal)
	text, err := next.encode()
	if err != nil {
		return nil
	}
	return &queue.Change{Name: st.Name, Expect: st.Last, Definition: text, Event: "schedule sealed"}
}

// stale reports whether the payload, which is open here, is not stored as the keys seal today.
func (d *definition) stale(keys *seal.Keys) bool {
	return keys != nil && len(d.Payload) > 0 && keys.Stale(d.Sealed)
}

// Unopened says why the payload of a stored schedule is not here, or "".
func (s *Schedule) Unopened() string {
	if s.sealed == nil {
		return ""
	}
	return fmt.Sprintf("encrypted with key %q, which this process does not have or which does not open it", s.sealed.Key)
}

// KeysOf counts the schedules whose payloads are encrypted, by the ID of the key. Deleted schedules that can be restored count
// too: without its key, such a schedule would come back with a payload that nobody can read.
func (s *Schedules) KeysOf(ctx context.Context) (map[string]int, error) {
	keys := map[string]int{}
	count := func(name, definition string) {
		if d, err := decodeDefinition(name, definition); err == nil && d.Sealed != nil {
			keys[d.Sealed.Key]++
		}
	}
	_, err := s.q.Schedules(ctx, func(list []queue.Stored) error {
		for _, st := range list {
			count(st.Name, st.Definition)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	gone, err := s.q.AllGone(ctx, true)
	for i := range gone {
		count(gone[i].Name, gone[i].Definition)
	}
	return keys, err
}
