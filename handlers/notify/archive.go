package notify

import (
	"fmt"
	"sync"
	"time"
)

// behindFor is the default of [Config].BehindFor: a batch that waits for a moment is nothing.
const behindFor = 5 * time.Minute

// archive is what this process knows of its archive.
type archive struct {
	mu      sync.Mutex
	entries int64
	since   time.Time // zero: it is not behind
}

// ArchiveBehind tells the notifier how many entries wait to be archived: zero if none does, and less if this instance does not
// archive. It does not block.
func (n *Notifier) ArchiveBehind(entries int64) {
	n.behind.mu.Lock()
	defer n.behind.mu.Unlock()
	n.behind.entries = entries
	switch {
	case entries <= 0:
		n.behind.since = time.Time{}
	case n.behind.since.IsZero():
		n.behind.since = time.Now()
	}
}

// now returns how many entries wait, and for how long there have been some.
func (a *archive) now() (entries int64, since time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return a.entries, 0
	}
	return a.entries, time.Since(a.since)
}

// theArchive is the subject of the archive: it is there from the message that it is behind until the one that it is not.
var theArchive = about{"archive", "behind"}

// judgeArchive tells that the archive is behind, once, and that it has caught up when it was so for a whole window.
func (r *round) judgeArchive(end time.Time, entries int64, since, behindFor time.Duration) {
	if !r.any(ArchiveBehind) {
		return
	}
	s := r.subjects[theArchive]
	switch {
	case s == nil && since >= behindFor:
		r.subject(theArchive).fail(end, "")
		r.add(ArchiveBehind, 1, Notice{At: end, Count: entries, Text: fmt.Sprintf("%s entries have waited to be archived for %s", grouped(entries), since.Round(time.Second))})
	case s != nil && since > 0:
		s.fail(end, "")
	case s != nil && entries == 0:
		s.succeed(end)
		if s.well(end, r.window) {
			r.add(ArchiveBehind, 1, Notice{At: end, Text: "the archive has caught up"})
			r.forget(theArchive)
		}
	}
}
