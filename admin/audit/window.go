package audit

import (
	"slices"
	"time"

	"github.com/onbeat/onbeat/producer"
)

const (
	// shortest is how far back an audit looks at least by default: a schedule with few slots has a window of its own.
	shortest = time.Hour
	// together is up to how long ago windows may begin that are read in one pass over the history: so far back that all that runs each
	// night is in one.
	together = 3 * 24 * time.Hour
)

// windows splits an audit of the listed schedules into audits that each read one part of the history. Without Options.Since each
// schedule is judged since its last two slots, so that one that runs each night is judged in the morning.
func (a *auditor) windows() []*auditor {
	if a.opts.Since > 0 {
		return []*auditor{a}
	}
	nights := *a
	nights.only, nights.starts, nights.unread = map[string]bool{}, map[string]time.Time{}, nil
	hour := *a
	hour.but = map[string]bool{}
	list := []*auditor{&hour, &nights}
	for i := range a.listed {
		s := &a.listed[i]
		from, name := windowOf(s, a.now), s.Schedule.Name
		switch {
		case !a.wanted(name), !from.Before(a.from):
			continue
		case a.now.Sub(from) > together: // few schedules have so long a window, and each reads only its own part of an archive
			one := *a
			one.only, one.listed, one.from, one.unread = setOf([]string{name}), a.listed[i:i+1], from, nil
			list = append(list, &one)
		default:
			nights.only[name], nights.starts[name] = true, from
			if from.Before(nights.from) {
				nights.from = from
			}
		}
		hour.but[name] = true
	}
	return slices.DeleteFunc(list, func(x *auditor) bool {
		return x == &nights && len(nights.only) == 0 || x == &hour && len(a.only) == 1 && len(hour.but) == 1
	})
}

// windowOf returns the last but one slot of a schedule, but at most the longest span ago. It is now if there is none.
func windowOf(s *producer.Status, now time.Time) time.Time {
	grid, err := s.Grid()
	if err != nil {
		return now
	}
	end := now
	if s.Next.IsZero() && !s.Paused && !s.Last.IsZero() { // it has ended
		end = s.Last.Add(time.Millisecond)
	}
	from := now
	for range 2 {
		if end = grid.Prev(end); end.IsZero() {
			break
		}
		from = end
	}
	return later(from, now.Add(-longest))
}
