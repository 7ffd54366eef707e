package admin

import (
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/producer"
)

// Masked returns the task as people see it who only look on: without what is secret of its payload.
func (t Task) Masked() Task {
	t.Payload = secret.Mask(t.Payload, t.Secret)
	if t.PayloadText != "" && len(t.Secret) > 0 {
		t.PayloadText = secret.Masked
	}
	return t
}

// Masked returns the schedule without what is secret of its payload, and without the URLs of its heartbeat.
func (s Schedule) Masked() Schedule {
	s.Payload = secret.Mask(s.Payload, secret.Join(s.Secret, s.SecretOfType))
	s.Heartbeat = s.Heartbeat.Masked()
	return s
}

// Masked returns the schedule without what is secret of its payload, and without the URLs of its heartbeat.
func (s ScheduleDetail) Masked() ScheduleDetail {
	s.Schedule = s.Schedule.Masked()
	return s
}

// Masked returns the revision without what is secret of a payload, here or in the revision before.
func (r Revision) Masked() Revision {
	if r.Definition != nil {
		d := *r.Definition
		d.Payload = secret.Mask(d.Payload, r.Secret)
		d.Heartbeat = d.Heartbeat.Masked()
		r.Definition = &d
	}
	r.Changes = producer.MaskChanges(r.Changes, r.Secret)
	return r
}

// Masked returns the plan without what is secret of a payload, as it was and as it would be.
func (p Plan) Masked() Plan {
	p.Changes = producer.MaskChanges(p.Changes, p.Secret)
	return p
}

// MaskedList returns a page whose items are masked: of tasks, of schedules, of plans.
func MaskedList[T interface{ Masked() T }](l List[T]) List[T] {
	out := List[T]{Items: make([]T, len(l.Items)), Next: l.Next, CouldNotAsk: l.CouldNotAsk}
	for i := range l.Items {
		out.Items[i] = l.Items[i].Masked()
	}
	return out
}
