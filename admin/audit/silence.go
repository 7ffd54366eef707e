package audit

import (
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/producer"
)

// silence returns the verdict on a slot whose end no note tells.
func (l *ledger) silence(s *slot) Verdict {
	at := time.UnixMilli(s.ms)
	p := l.period(at)
	switch {
	case s.flags&running != 0:
		return Running
	case s.flags&stands != 0:
		return Pending
	case at.After(l.in.Settled) && l.in.Paused:
		return Paused
	case at.After(l.in.Settled), s.state == silent && slices.ContainsFunc(l.in.Behind, func(b producer.Span) bool {
		return at.After(b.From) && !at.After(b.To)
	}):
		return Pending
	case s.state == silent && !l.in.Known.IsZero() && at.Before(l.in.Known):
		return Unknown
	case l.inGap(at), !at.After(l.in.Forgot), p != nil && p.Forgotten:
		return Unknown
	case s.state == silent && at.After(l.in.Now.Add(-l.in.Grace)):
		return Pending
	case s.state == silent && p != nil && !p.Until.IsZero() && at.After(p.Looked):
		return Changed
	case s.state == silent && slices.ContainsFunc(l.in.Resumed, func(r time.Time) bool {
		return !at.After(r) && at.After(r.Add(-resumeEdge))
	}):
		return Paused
	}
	return Lost
}

// noteTime is how long after a slot a note of it may come, as a rule: runs take a while, and are tried again.
const noteTime = time.Hour

// inGap reports whether a note of a slot may be among the entries that are lost.
func (l *ledger) inGap(at time.Time) bool {
	return slices.ContainsFunc(l.in.Gaps, func(g past.Gap) bool {
		return !at.After(g.To) && at.After(g.From.Add(-noteTime))
	})
}

// resumeEdge is how long before the end of a pause a slot may have come without a note: the caller that ended the pause
// read the schedule a moment earlier.
const resumeEdge = 2 * time.Second
