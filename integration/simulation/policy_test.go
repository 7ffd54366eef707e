package simulation

import (
	"slices"
	"time"

	"github.com/onbeat/onbeat/schedule"
)

// judgeCount: exactly as many slots run as max_runs says.
func (w *world) judgeCount(l *timeline) {
	most := int(l.plan.MaxRuns)
	if most == 0 || !l.common || l.plan.Overlap != "" && l.plan.Overlap != schedule.OverlapAllow {
		return
	}
	ran, forgiven, after := 0, false, 0
	for _, d := range l.duties {
		forgiven = forgiven || d.forgiven
		if len(d.runs) > 0 || d.gone != "" { // a cancelled slot counts as one of them
			ran++
		} else if l.onEdge(d.slot) == "" {
			after++ // it came when nothing was wrong
		}
	}
	if ran > most && !forgiven {
		w.blame("max_runs", "%s ran %d slots, and was to end after %d", l.name, ran, most)
	}
	if ran < most && after > 1 && !forgiven {
		w.blame("max_runs", "%s ran %d slots of %d, and then %d more slots came", l.name, ran, most, after)
	}
}

// judgeGap: the slots of a time without a process follow the schedule's policy. Only clear gaps are judged: long ones, with
// no other fault.
func (w *world) judgeGap(l *timeline, g outage) {
	if !l.common || l.plan.MaxRuns > 0 || g.to.Sub(g.from) < 2*w.plan.longestLease()+2*time.Second || w.unclear(l, g) {
		return
	}
	missed, maybe := w.missedIn(l, g)
	if len(missed) == 0 {
		return
	}
	latest, ran := missed[len(missed)-1], 0
	for _, d := range missed {
		if len(d.runs) > 0 {
			ran++
		}
	}
	switch l.plan.Missed {
	case schedule.MissedSkip:
		if ran > 0 {
			w.blame("policy", "%s: %d slots that were missed ran, and its policy is skip", l.name, ran)
		}
	case schedule.MissedAll:
		reach := l.plan.CatchUp.d()
		if reach == 0 {
			reach = schedule.DefaultCatchUp
		}
		for _, d := range missed {
			if at := d.slot.Add(-g.offset); len(d.runs) == 0 && !d.mayBeCancelled() && !d.forgiven && g.to.Sub(at) < reach-2*time.Second && g.to.Before(w.quiet.Add(-20*time.Second)) {
				w.blame("policy", "%s: %s was missed and never ran, and its policy is all", l.name, d.id)
				return
			}
		}
	default:
		if ran > 1 || ran == 1 && len(latest.runs) == 0 {
			w.blame("policy", "%s: %d slots that were missed ran, and its policy is once", l.name, ran)
		}
		later := slices.ContainsFunc(maybe, func(d *duty) bool { return len(d.runs) > 0 || d.mayBeCancelled() })
		if ran == 0 && !latest.mayBeCancelled() && !later {
			w.blame("policy", "%s: the latest missed slot, %s, never ran, and its policy is once", l.name, latest.id)
		}
	}
}

// missedIn returns the slots that were missed in an outage, and after them those about its end, of which the first may have been missed too.
// A slot that was pushed ahead and is delayed past the end was not missed. If the clock of Redis was set later, the same times of slots may
// have come in another time.
func (w *world) missedIn(l *timeline, g outage) (missed, maybe []*duty) {
	from := g.from.Add(w.plan.longestLease() + slack) // until then a claim may have been on its way
	for _, d := range l.duties {
		switch at := d.slot.Add(-g.offset); {
		case !at.After(from) || !at.Before(g.to) || d.known.Before(g.from) || d.known.After(g.to.Add(slack)):
		case d.first.Add(-g.offset).Before(g.back):
			missed = append(missed, d)
		default:
			maybe = append(maybe, d)
		}
	}
	return missed, maybe
}

// unclear reports whether another event changes what happens to missed slots.
func (w *world) unclear(l *timeline, g outage) bool {
	for _, e := range l.edges {
		if e.why != "nobody was there" && e.to.Add(-g.offset).After(g.from.Add(-slack)) && e.from.Add(-g.offset).Before(g.to.Add(slack)) {
			return true
		}
	}
	for _, o := range w.gaps {
		if o != g && o.to.After(g.from.Add(-2*time.Second)) && o.from.Before(g.to.Add(5*time.Second)) {
			return true
		}
	}
	return slices.ContainsFunc(w.lossy, func(since time.Time) bool { return since.After(g.from) && since.Before(g.to.Add(20*time.Second)) })
}
