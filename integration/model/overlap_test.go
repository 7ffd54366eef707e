package model

import (
	"strings"

	"github.com/onbeat/onbeat/task"
)

// asked reports whether a caller asked to cancel a run, by its task or its key. A newer slot does not replace a run that is
// behind.
func (e entry) asked(id string, d disk) bool {
	covers := func(target string) (bool, string) {
		fence, rest, ok := strings.Cut(d.get(keys.Cancel, target), " ")
		return ok && e.fence <= number(fence), rest
	}
	if byTask, _ := covers(id); byTask {
		return true
	}
	byKey, rest := covers("k:" + e.key)
	return e.key != "" && byKey && !(e.overlap == task.Behind && strings.HasSuffix(rest, "replaced"))
}

// onTime returns the other tasks of a key that are on time.
func (b *book) onTime(id, key string, is func(string, entry) bool) bool {
	for other, o := range b.tasks {
		if other != id && o.key == key && o.overlap != task.Behind && is(other, o) {
			return true
		}
	}
	return false
}

// judgeSkipped: a slot that is skipped for overlap does overlap a slot on time.
func (b *book) judgeSkipped(id string, e entry) {
	ok := b.onTime(id, e.key, func(_ string, o entry) bool {
		return o.place == running || o.place == waiting && (e.overlap != task.Wait || o.overlap == task.Replace)
	})
	if !ok {
		broken(2, "%s was skipped, and no other of its key is on time: %v", id, e)
	}
}

// judgeOverlap: a slot that replaces others asks all runs of its key that are on time to stop, and no other run. A task that
// waits behind does not run before one that waits on time.
func (b *book) judgeOverlap(w *world, before disk) {
	was := before.places()
	for id, f := range w.disk.places() {
		e := b.tasks[id]
		if f.held && !was[id].held && e.overlap == task.Replace {
			b.onTime(id, e.key, func(other string, o entry) bool {
				if o.place == running && !o.asked(other, w.disk) {
					broken(2, "%s is to be replaced by %s, and nobody asked it to stop", other, id)
				}
				return false
			})
		}
		if f.held && was[id].held && e.overlap != task.Behind {
			for other, o := range b.tasks {
				if o.key == e.key && o.overlap == task.Behind && o.place == running && was[other].held {
					broken(2, "%s is behind and runs, and %s waits", other, id)
				}
			}
		}
	}
	for _, f := range w.disk[keys.Cancel].fields {
		key, ok := strings.CutPrefix(f.name, "k:")
		if ok && f.text != before.get(keys.Cancel, f.name) && !b.onTime("", key, func(_ string, o entry) bool { return o.place == running }) {
			broken(2, "those of key %s are asked to stop, and none on time runs", key)
		}
	}
}
