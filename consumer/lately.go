package consumer

import "github.com/onbeat/onbeat/queue"

// lately keeps the newest settlements that Redis has taken. Redis may lose them while it keeps the claims: a replica that is
// promoted knows the claim of a run, and not yet how it ended. Then they are settled again, and the run is not repeated.
type lately struct {
	ring []queue.Settlement
	next int
}

// mostLately is how many are kept: those of the last seconds, unless there are many thousands a second.
const mostLately = 8192

type settledKey struct {
	id    string
	fence int64
}

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

// by returns them by what was claimed. A fence names one claim of a task, so what was settled once may be settled again.
func (l *lately) by() map[settledKey]queue.Settlement {
	m := make(map[settledKey]queue.Settlement, len(l.ring))
	for _, s := range l.ring {
		m[settledKey{s.ID, s.Fence}] = s
	}
	return m
}
