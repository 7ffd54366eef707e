package seal

import (
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// SealTask encrypts the payload for the record: [task.Encode] then writes Sealed in place of Payload. Keys that seal nothing leave the
// payload as it is.
func (k *Keys) SealTask(t *task.Task) {
	if len(t.Payload) > 0 { // else Sealed may be that of a schedule, which this process cannot open
		t.Sealed = k.Seal(Task(t.ID, t.Type), t.Payload, t.Secret)
	}
}

// OpenTask decrypts the payload of a record, and keeps Sealed: a record that is written again has the same. The task has the secret paths
// that were sealed with the payload too, whatever the record says. The error matches [task.ErrNoKey] or [task.ErrDamaged], and the payload
// is then nil.
func (k *Keys) OpenTask(t *task.Task) error {
	if t.Sealed == nil || t.Payload != nil {
		return nil
	}
	owner := Task(t.ID, t.Type)
	if t.Sealed.Kind == OfSchedule {
		owner = Schedule(t.Schedule, t.Type)
	}
	plain, paths, err := k.Open(owner, t.Sealed)
	t.Payload, t.Secret = plain, secret.Join(t.Secret, paths)
	return err
}
