package task

import "github.com/onbeat/onbeat/internal/seal"

// Seal encrypts the payload for the record: [Encode] then writes Sealed in place of Payload. Keys that seal nothing leave the
// payload as it is.
func (t *Task) Seal(k *seal.Keys) {
	if len(t.Payload) > 0 { // else Sealed may be that of a schedule, which this process cannot open
		t.Sealed = k.Seal(seal.Task(t.ID, t.Type), t.Payload)
	}
}

// Open decrypts the payload of a record, and keeps Sealed: a record that is written again has the same. The error matches
// [seal.ErrNoKey] or [seal.ErrDamaged], and the payload is then nil.
func (t *Task) Open(k *seal.Keys) (err error) {
	if t.Sealed == nil || t.Payload != nil {
		return nil
	}
	owner := seal.Task(t.ID, t.Type)
	if t.Sealed.Kind == seal.OfSchedule {
		owner = seal.Schedule(t.Schedule, t.Type)
	}
	t.Payload, err = k.Open(owner, t.Sealed)
	return err
}
