package simulation

import (
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
func (w *world) judgeGap(l *timeline, g gap) {
	offset := w.redis.offsetNow()
	lease := w.plan.longestLease()
	if !l.common || l.plan.MaxRuns > 0 || g.to.Sub(g.from) < 2*lease+2*time.Second || w.unclear(l, g) {
		return
	}
	var inside []*duty
	for _, d := range l.duties {
		if at := d.slot.Add(-offset); at.After(g.from.Add(lease+slack)) && at.Before(g.to.Add(-slack)) {
			inside = append(inside, d)
		}
	}
	if len(inside) == 0 {
		return
	}
	latest, ran := inside[len(inside)-1], 0
	for _, d := range inside {
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
		for _, d := range inside {
			if at := d.slot.Add(-offset); len(d.runs) == 0 && !d.mayBeCancelled() && g.to.Sub(at) < reach-2*time.Second && g.to.Before(w.quiet.Add(-20*time.Second)) {
				w.blame("policy", "%s: %s was missed and never ran, and its policy is all", l.name, d.id)
				return
			}
		}
	default:
		if ran > 1 || ran == 1 && len(latest.runs) == 0 {
			w.blame("policy", "%s: %d slots that were missed ran, and its policy is once", l.name, ran)
		}
		if ran == 0 && !latest.mayBeCancelled() && !w.ranAbout(l, g.to) {
			w.blame("policy", "%s: the latest missed slot, %s, never ran, and its policy is once", l.name, latest.id)
		}
	}
}

// ranAbout reports whether a slot at the very end of a gap ran, so that it was the latest missed slot.
func (w *world) ranAbout(l *timeline, at time.Time) bool {
	offset := w.redis.offsetNow()
	for _, d := range l.duties {
		if slot := d.slot.Add(-offset); slot.After(at.Add(-slack)) && slot.Before(at.Add(slack)) && len(d.runs) > 0 {
			return true
		}
	}
	return false
}

// unclear reports whether another event changes what happens to missed slots.
func (w *world) unclear(l *timeline, g gap) bool {
	offset := w.redis.offsetNow()
	for _, e := range l.edges {
		if e.why != "nobody was there" && e.to.Add(-offset).After(g.from.Add(-slack)) && e.from.Add(-offset).Before(g.to.Add(slack)) {
			return true
		}
	}
	for _, o := range w.gaps {
		if o != g && o.to.After(g.from.Add(-2*time.Second)) && o.from.Before(g.to.Add(5*time.Second)) {
			return true
		}
	}
	for _, d := range l.duties {
		if d.forgiven {
			return true
		}
		if overlap := l.plan.Overlap; overlap != "" && overlap != schedule.OverlapAllow && d.tries > 1 {
			return true // a run that was lost comes back, and a late slot may overlap it
		}
	}
	return false
}
