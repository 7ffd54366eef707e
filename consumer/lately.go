package consumer

import "github.com/onbeat/onbeat/queue"

// lately keeps the newest settlements that Redis has accepted. A failover may lose a settlement and keep its claim: the
// promoted replica had received the claim, but not yet the settlement. Then adopt settles the run again from here, and
// the task does not run twice.
type lately struct {
	ring []queue.Settlement
	next int
}

// mostLately is how many settlements lately keeps: those of the last seconds, unless many thousands end each second.
const mostLately = 8192

// settledKey names one claim of a task.
type settledKey struct {
	id    string
	fence int64
}

// add keeps a batch of settlements. The oldest ones make room.
func (l *lately) add(batch []queue.Settlement) {
	for _, s := range batch {
		if len(l.ring) < mostLately {
			l.ring = append(l.ring, s)
			continue
		}
		l.ring[l.next] = s
		l.next = (l.next + 1) % mostLately
	}
}

// by returns the settlements by claim. A fence names one claim of a task, so it is safe to settle the same claim again.
func (l *lately) by() map[settledKey]queue.Settlement {
	m := make(map[settledKey]queue.Settlement, len(l.ring))
	for _, s := range l.ring {
		m[settledKey{s.ID, s.Fence}] = s
	}
	return m
}
