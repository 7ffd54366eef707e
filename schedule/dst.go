package schedule

// This file maps a calendar, which has only wall-clock seconds, to a zone's spans. Within a span the two differ by a
// constant, so a slot is a match minus the offset. Everything about daylight saving is decided at the ends of a span.

// margin is larger than the difference of any two offsets of a zone. Kwajalein and Samoa crossed the date line and changed
// theirs by 24 hours.
const margin = 2 * daySeconds

// cronGrid is a calendar in a zone, under a policy that is no longer automatic.
type cronGrid struct {
	cal  calendar
	zone *zone
	dst  DST
}

// window returns the wall-clock seconds of s, [lo, hi), that have their own slots.
func (g *cronGrid) window(s span) (lo, hi int64) {
	lo, hi = s.start+s.offset, s.end+s.offset
	if g.dst.Overlap == DSTOverlapFirst && s.before > s.offset {
		lo = s.start + s.before // times that happen twice at the start belong to the span before
	}
	if g.dst.Overlap == DSTOverlapSecond && s.to < s.offset {
		hi = s.end + s.to // times that happen again after the end belong to the span after
	}
	return lo, hi
}

// gapSlot reports whether the start of s is a slot because the clock went forward over a match there.
func (g *cronGrid) gapSlot(s span) bool {
	return g.dst.Gap == DSTGapAfter && g.skips(s)
}

// skips reports whether the clock went forward over a match at the start of s.
func (g *cronGrid) skips(s span) bool {
	return s.before < s.offset && g.cal.next(s.start+s.before) < s.start+s.offset
}

// next returns the first slot in [t, limit], in unix seconds, or never if there is none.
func (g *cronGrid) next(t, limit int64) int64 {
	for t <= limit {
		s := g.zone.at(t)
		if t == s.start && g.gapSlot(s) {
			return t
		}
		lo, hi := g.window(s)
		w := g.cal.next(max(lo, t+s.offset))
		if w < hi {
			if w -= s.offset; w > limit {
				return never
			}
			return w
		}
		if w == never && s.end > limit {
			return never
		}
		skip := s.end
		if s.end-t > margin {
			// Later spans show no time that this span left out, so nothing can match until the clock comes near w. Without
			// this, 29 February would visit every clock change on its way.
			skip = max(skip, w-margin)
		}
		t = skip
	}
	return never
}

// prev returns the last slot in [limit, t], in unix seconds, or always if there is none.
func (g *cronGrid) prev(t, limit int64) int64 {
	for t >= limit {
		s := g.zone.at(t)
		lo, hi := g.window(s)
		w := g.cal.prev(min(hi-1, t+s.offset))
		if w >= lo {
			if w -= s.offset; w < limit {
				return always
			}
			return w
		}
		if s.start >= limit && g.gapSlot(s) {
			return s.start
		}
		skip := s.start - 1
		if t-s.start > margin {
			skip = min(skip, w+margin) // as in next
		}
		t = skip
	}
	return always
}

// count returns how many slots lie in [from, to].
func (g *cronGrid) count(from, to int64) int64 {
	n := int64(0)
	for t := from; t <= to; {
		s := g.zone.at(t)
		lo, hi := g.window(s)
		lo, hi = max(lo, t+s.offset), min(hi, to+1+s.offset)
		n += g.cal.count(lo, hi)
		if t == s.start && g.gapSlot(s) && !g.cal.matches(t+s.offset) {
			n++
		}
		t = s.end
	}
	return n
}
