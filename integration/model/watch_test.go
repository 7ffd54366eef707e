package model

import "strings"

// checkWatch: if a kind has an idle instance, one instance of that kind looks when the next task that it may take is due, or
// earlier. The instance that watches must be one that may claim. Otherwise the task would lie there until something else
// happens.
func (b *book) checkWatch(w *world) {
	first := map[string]float64{}
	for _, f := range w.disk[keys.Watch].fields {
		id, kind, _ := strings.Cut(f.name, "\x1f")
		if !b.watches(id) {
			broken(5, "%s watches, and may take nothing", id)
		}
		if at, ok := first[kind]; !ok || f.score < at {
			first[kind] = f.score
		}
	}
	for _, l := range lanes {
		typ := l.Lane.Type
		if l.Limit > 0 && b.count(func(e entry) bool { return e.typ == typ }) >= l.Limit {
			continue
		}
		for _, f := range w.disk[keys.Due(l.Lane)].fields {
			for kind, at := range first {
				if max(f.score, float64(w.now)) < at {
					broken(2, "%s is due at %.0f, and of kind %s nobody looks before %.0f", f.name, f.score, kind, at)
				}
			}
		}
	}
}

func (b *book) watches(id string) bool {
	for gen, m := range b.members {
		if m.id == id && b.permits(gen) {
			return true
		}
	}
	return false
}
