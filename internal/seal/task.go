package seal

import "github.com/onbeat/onbeat/task"

// SealTask encrypts the payload for the record: [task.Encode] then writes Sealed in place of Payload. Keys that seal nothing leave the
// payload as it is.
func (k *Keys) SealTask(t *task.Task) {
	if len(t.Payload) > 0 { // else Sealed may be that of a schedule, which this process cannot open
		t.Sealed = k.Seal(Task(t.ID, t.Type), t.Payload)
	}
}

// OpenTask decrypts the payload of a record, and keeps Sealed: a record that is written again has the same. The error matches
// [task.ErrNoKey] or [task.ErrDamaged], and the payload is then nil.
func (k *Keys) OpenTask(t *task.Task) (err error) {
	if t.Sealed == nil || t.Payload != nil {
		return nil
	}
	owner := Task(t.ID, t.Type)
	if t.Sealed.Kind == OfSchedule {
		owner = Schedule(t.Schedule, t.Type)
	}
	t.Payload, err = k.Open(owner, t.Sealed)
	return err
}
