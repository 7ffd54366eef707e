package consumer

import (
	"slices"

	"github.com/onbeat/onbeat/internal/queue"
)

// lately keeps the newest settlements that Redis has accepted. A failover may lose a settlement and keep its claim: the
// promoted replica had received the claim, but not yet the settlement. Then adopt settles the run again from here, and
// the task does not run twice.
type lately struct {
	list  []queue.Settlement // the oldest first, from head on
	head  int
	bytes int // of the records and notes in it
	share int // how many consumers share the room that there is; 0 is 1
}

// The consumers of an instance keep at most this many settlements together, and each keeps a few at least. They are those of the last
// seconds, unless many thousands end each second. Their records and notes have at most so many bytes: a failed run carries its task's
// payload, and a note the output.
const (
	mostLately      = 8192
	fewLately       = 128
	mostLatelyBytes = 8 << 20
)

// settledKey names one claim of a task.
type settledKey struct {
	id    string
	fence int64
}

// add keeps a batch of settlements. The oldest ones make room.
func (l *lately) add(batch []queue.Settlement) {
	for _, s := range batch {
		s.Task = nil // it holds the payload once more
		l.list = append(l.list, s)
		l.bytes += len(s.Record) + len(s.Note)
	}
	share := max(l.share, 1)
	most := max(mostLately/share, fewLately)
	for len(l.list)-l.head > most || l.bytes > mostLatelyBytes/share {
		l.bytes -= len(l.list[l.head].Record) + len(l.list[l.head].Note)
		l.list[l.head] = queue.Settlement{}
		l.head++
	}
	if l.head > most {
		l.list, l.head = slices.Delete(l.list, 0, l.head), 0
	}
}

// by returns the settlements by claim. A fence names one claim of a task, so it is safe to settle the same claim again.
func (l *lately) by() map[settledKey]queue.Settlement {
	m := make(map[settledKey]queue.Settlement, len(l.list)-l.head)
	for _, s := range l.list[l.head:] {
		m[settledKey{s.ID, s.Fence}] = s
	}
	return m
}
