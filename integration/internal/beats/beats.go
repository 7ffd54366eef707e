// Package beats judges the runs of a periodic job by nothing but the time at which each began. So it can judge schedulers that know
// no slots, and it judges all of them alike.
//
// It reads the runs in the kindest way: each is given to a slot so that the fewest faults are counted. A slot whose run began a
// second late is one fault, and not a slot that was missed and another that ran twice.
package beats

import (
	"cmp"
	"slices"
	"time"
)

// Run is one begin of the job, as its receiver saw it. Runs with the same ID are attempts of the same work.
type Run struct {
	ID   string
	At   time.Time
	Done bool // it came to its end
}

// Span is a time, without its end.
type Span struct{ From, To time.Time }

func (s Span) holds(t time.Time) bool { return !t.Before(s.From) && t.Before(s.To) }

// Rule says what is expected of a job: a slot each Every, of which one lies at Anchor, from From until Until.
type Rule struct {
	Every       time.Duration
	Anchor      time.Time
	From, Until time.Time
	// Down are times in which nobody was there to run the job. A slot of such a time that never ran, or ran late, is no fault.
	Down []Span
	// Quiet are further times in which a silence is no fault.
	Quiet []Span
}

// Fate is what became of a slot, or of a run that has none.
type Fate string

const (
	OnTime  Fate = "on time"
	OffGrid Fate = "off grid" // it began more than a fifth of the interval beside its slot
	Missed  Fate = "missed"
	Doubled Fate = "doubled" // a run that no slot is left for
	Down    Fate = "down"    // nobody could run it, and nobody did
	MadeUp  Fate = "made up" // nobody could run it, and somebody did later
)

// Mark is one slot with its fate, at the time of its run if it has one; or one run without a slot.
type Mark struct {
	Fate Fate
	Slot time.Time // zero if it has none
	At   time.Time
}

// Verdict is what became of a job.
type Verdict struct {
	Marks    []Mark // by time
	Repeated int    // attempts that came after another of the same work
	Lost     int    // works of which no attempt came to its end
	// Silence is the longest time without a begin, of which no part lies in Rule.Down or Rule.Quiet.
	Silence time.Duration
}

// work is what the attempts with one ID do.
type work struct {
	began    time.Time
	attempts int
	done     bool
}

// Judge judges the runs of one job. The time that is judged begins and ends in the middle between two slots, so that each run in it
// is one of a slot in it.
func Judge(r Rule, runs []Run) (v Verdict) {
	r.From, r.Until = r.between(r.From), r.between(r.Until)
	works := worksOf(r, runs)
	for _, w := range works {
		v.Repeated += w.attempts - 1
		if !w.done {
			v.Lost++
		}
	}
	v.Silence = silence(r, runs)
	v.Marks = align(r, r.slots(), works)
	return v
}

// Count is how many marks have a fate.
func (v *Verdict) Count(f Fate) (n int) {
	for _, m := range v.Marks {
		if m.Fate == f {
			n++
		}
	}
	return n
}

// Faults is how many marks are faults.
func (v *Verdict) Faults() int { return v.Count(Missed) + v.Count(Doubled) + v.Count(OffGrid) }

// Anchored returns the rule with one of the moments as its anchor: the moment by which the fewest faults are counted.
func (r Rule) Anchored(candidates []time.Time, runs []Run) Rule {
	least := -1
	best := r
	for _, at := range candidates {
		one := r
		one.Anchor = at
		v := Judge(one, runs)
		if n := v.Faults(); least < 0 || n < least {
			least, best = n, one
		}
	}
	return best
}

// between returns the first moment from t on that lies in the middle between two slots.
func (r Rule) between(t time.Time) time.Time {
	at := r.Anchor.Add(r.Every / 2)
	at = at.Add(t.Sub(at).Truncate(r.Every))
	if at.Before(t) {
		at = at.Add(r.Every)
	}
	return at
}

func (r Rule) slots() (list []time.Time) {
	for at := r.From.Add(r.Every / 2); at.Before(r.Until); at = at.Add(r.Every) {
		list = append(list, at)
	}
	return list
}

// slack is how far from its slot a run may begin.
func (r Rule) slack() time.Duration { return r.Every / 5 }

// worksOf puts the attempts of each work together, and leaves out works that began before or behind the time that is judged.
func worksOf(r Rule, runs []Run) (list []*work) {
	byID := map[string]*work{}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Run) int { return a.At.Compare(b.At) })
	for _, x := range runs {
		w := byID[x.ID]
		if w == nil {
			w = &work{began: x.At}
			byID[x.ID] = w
			if !x.At.Before(r.From) && x.At.Before(r.Until) {
				list = append(list, w)
			}
		}
		w.attempts++
		w.done = w.done || x.Done
	}
	return list
}

func silence(r Rule, runs []Run) (longest time.Duration) {
	left := []Span{{r.From, r.Until}}
	for _, d := range slices.Concat(r.Down, r.Quiet) {
		left = cut(left, d)
	}
	for _, x := range runs {
		left = cut(left, Span{x.At, x.At})
	}
	for _, s := range left {
		longest = max(longest, s.To.Sub(s.From))
	}
	return longest
}

// cut takes a span out of others.
func cut(list []Span, out Span) (left []Span) {
	for _, s := range list {
		if !out.From.Before(s.To) || !out.To.After(s.From) {
			left = append(left, s)
			continue
		}
		if out.From.After(s.From) {
			left = append(left, Span{s.From, out.From})
		}
		if out.To.Before(s.To) {
			left = append(left, Span{out.To, s.To})
		}
	}
	return left
}

// step is how a place in the table of align was reached.
type step byte

const (
	skipSlot step = iota + 1
	skipWork
	match
)

// align gives works to slots, both in the order of their times, so that the least is wrong. It is the alignment of two sequences by
// dynamic programming.
func align(r Rule, slots []time.Time, works []*work) []Mark {
	n, m := len(slots), len(works)
	cost := make([][]float64, n+1)
	how := make([][]step, n+1)
	for i := range cost {
		cost[i], how[i] = make([]float64, m+1), make([]step, m+1)
		for j := range cost[i] {
			if i+j == 0 {
				continue
			}
			best := -1.0
			try := func(c float64, s step) {
				if best < 0 || c < best {
					best, how[i][j] = c, s
				}
			}
			if i > 0 && j > 0 {
				try(cost[i-1][j-1]+r.beside(slots[i-1], works[j-1].began), match)
			}
			if i > 0 {
				try(cost[i-1][j]+r.without(slots[i-1]), skipSlot)
			}
			if j > 0 {
				try(cost[i][j-1]+1, skipWork)
			}
			cost[i][j] = best
		}
	}
	var marks []Mark
	for i, j := n, m; i+j > 0; {
		switch how[i][j] {
		case match:
			i, j = i-1, j-1
			marks = append(marks, Mark{r.fate(slots[i], works[j].began), slots[i], works[j].began})
		case skipSlot:
			i--
			fate := Missed
			if r.down(slots[i]) {
				fate = Down
			}
			marks = append(marks, Mark{fate, slots[i], slots[i]})
		default:
			j--
			marks = append(marks, Mark{Fate: Doubled, At: works[j].began})
		}
	}
	slices.SortStableFunc(marks, func(a, b Mark) int {
		return cmp.Or(a.At.Compare(b.At), a.Slot.Compare(b.Slot))
	})
	return marks
}

func (r Rule) down(slot time.Time) bool {
	return slices.ContainsFunc(r.Down, func(d Span) bool { return d.holds(slot) })
}

func (r Rule) fate(slot, at time.Time) Fate {
	switch {
	case at.Sub(slot).Abs() <= r.slack():
		return OnTime
	case r.down(slot) && at.After(slot):
		return MadeUp
	}
	return OffGrid
}

// beside is the cost of giving a run to a slot. Among equals the nearest wins.
func (r Rule) beside(slot, at time.Time) float64 {
	near := min(at.Sub(slot).Abs().Hours(), 0.4)
	if r.fate(slot, at) == OffGrid {
		return 1 + near
	}
	return near
}

// without is the cost of leaving a slot without a run.
func (r Rule) without(slot time.Time) float64 {
	if r.down(slot) {
		return 0
	}
	return 1
}
