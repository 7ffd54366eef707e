package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// found is a place in Redis where a task lies.
type found struct {
	entry
	times int
	where string
	held  bool
}

var (
	duePrefix     = strings.TrimSuffix(keys.Due(lanes[0].Lane), lanes[0].Lane.String())
	runningPrefix = strings.TrimSuffix(keys.Running(0), "0")
)

// places finds every task, with all its places.
func (d disk) places() map[string]found {
	all := map[string]found{}
	put := func(id, where string, e entry, held bool) {
		all[id] = found{entry: e, times: all[id].times + 1, where: all[id].where + " " + where, held: held}
	}
	for key, v := range d {
		for _, f := range v.fields {
			switch {
			case strings.HasPrefix(key, duePrefix):
				put(f.name, key, entry{place: waiting, due: int64(f.score)}, false)
			case key == keys.Held:
				parts := strings.Split(f.name, "\x1f")
				put(parts[3], key, entry{place: waiting, due: number(strings.TrimLeft(parts[1], "0"))}, true)
			case strings.HasPrefix(key, runningPrefix) && f.name != "":
				fence, _, _ := strings.Cut(f.text, " ")
				put(f.name, key, entry{place: running, gen: number(key[len(runningPrefix):]), fence: number(fence)}, false)
			case key == keys.Dead:
				put(f.name, key, entry{place: dead}, false)
			case key == keys.Done:
				put(f.name, key, entry{place: kept}, false)
			}
		}
	}
	return all
}

// judgeLanes: a lane that holds tasks is in the list, and a consumer with an older list is told of the newer one. Otherwise
// no consumer reads the lane, and its tasks are lost.
func judgeLanes(now, before disk) {
	for key, v := range now {
		lane, is := strings.CutPrefix(key, duePrefix)
		if !is || len(v.fields) == 0 {
			continue
		}
		if _, known := now.find(keys.Lanes, lane); !known {
			broken(2, "lane %s holds %d tasks, and nobody knows of it", lane, len(v.fields))
		}
		_, was := before.find(keys.Lanes, lane)
		if version := now.get(keys.Meta, "lanes"); !was && version == before.get(keys.Meta, "lanes") {
			broken(2, "lane %s is new, and the lanes are still in version %s", lane, version)
		}
	}
}

// checkPlaces: each task is where the book says, and nowhere else, with its record; the limits count what runs.
func (b *book) checkPlaces(w *world) {
	all := w.disk.places()
	for id, e := range b.tasks {
		f, ok := all[id]
		if e.place == gone || e.place == kept && e.end <= w.now && !ok {
			delete(b.tasks, id) // a finished task may leave in any call once its time is over, and not before
			continue
		}
		if !ok {
			broken(3, "%s is lost: it must be %v", id, e)
		}
		b.checkPlace(w, id, e, f)
	}
	for id, f := range all {
		if _, ok := b.tasks[id]; !ok {
			broken(3, "%s must be gone, and lies in%s", id, f.where)
		}
	}
	for _, f := range w.disk[keys.Tasks].fields {
		if _, ok := b.tasks[f.name]; !ok {
			broken(3, "the record of %s was left behind", f.name)
		}
	}
	b.checkLimits(w)
}

func (b *book) checkPlace(w *world, id string, e entry, f found) {
	if f.times != 1 || f.place != e.place || f.gen != e.gen || f.fence != e.fence || e.place == waiting && f.due != e.due {
		broken(3, "%s must be %v, and lies in%s: %v", id, e, f.where, f.entry)
	}
	var t task.Task
	if err := task.Decode(w.disk.get(keys.Tasks, id), &t); err != nil {
		broken(3, "%s: its record: %v", id, err)
	}
	if t.Attempts != e.attempts || t.Type != e.typ || t.Key != e.key || t.Overlap != e.overlap {
		broken(3, "%s: its record says %d attempts, type %s, key %q, overlap %q; it is %v", id, t.Attempts, t.Type, t.Key, t.Overlap, e)
	}
	if f.held {
		b.checkHeld(w, id, e)
	}
}

// checkHeld: a task waits for its key only while as many tasks of the key as may run are running, or can be claimed.
func (b *book) checkHeld(w *world, id string, e entry) {
	n := 0
	for other, o := range b.tasks {
		_, inLane := w.disk.find(duePrefix+"default|normal|"+o.typ, other)
		if o.key == e.key && (o.place == running || inLane && !b.full(o.typ)) {
			n++
		}
	}
	if n < e.limit {
		broken(2, "%s waits for its key, of which %d may run, and %d run or can", id, e.limit, n)
	}
}

// full reports whether a type has reached its limit.
func (b *book) full(typ string) bool {
	n := b.count(func(o entry) bool { return o.typ == typ })
	return slices.ContainsFunc(lanes, func(l queue.LaneClaim) bool { return l.Lane.Type == typ && l.Limit > 0 && n >= l.Limit })
}

func (b *book) checkLimits(w *world) {
	want := map[string]int{}
	for _, e := range b.tasks {
		if e.place != running {
			continue
		}
		if e.key != "" {
			want["k:"+e.key]++
		}
		if e.overlap == task.Behind {
			want["b:"+e.key]++
		}
		if e.typ == "rare" {
			want["t:rare"]++
		}
	}
	for _, f := range w.disk[keys.Active].fields {
		if n := want[f.name]; n == 0 || f.text != fmt.Sprint(n) {
			broken(3, "%s of %s are counted, %d run", f.text, f.name, want[f.name])
		}
		delete(want, f.name)
	}
	for name, n := range want {
		broken(3, "none of %s are counted, %d run", name, n)
	}
}
