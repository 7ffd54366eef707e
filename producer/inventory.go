package producer

import (
	"bytes"
	"reflect"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
)

// inventory is the result of a reading of all schedules, beside the declarations of this release. A schedule that is stored as it
// is declared is compared once, as text, and not decoded.
type inventory struct {
	declared []Schedule              // declared by this release, see [SchedulerConfig]; nil: it leaves the schedules of other releases alone
	place    map[string]int          // of each in declared, by name
	settled  []bool                  // those that are stored as they are declared
	stored   map[string]queue.Stored // all others that are stored
	heads    readHead
}

func newInventory(declared []Schedule) *inventory {
	inv := &inventory{
		declared: declared, place: make(map[string]int, len(declared)), settled: make([]bool, len(declared)),
		stored: map[string]queue.Stored{},
	}
	for i := range declared {
		inv.place[declared[i].Name] = i
	}
	return inv
}

// has reports whether a schedule is stored.
func (inv *inventory) has(name string) bool {
	if i, ok := inv.place[name]; ok && inv.settled[i] {
		return true
	}
	_, ok := inv.stored[name]
	return ok
}

// differing lists what is declared and not stored so.
func (inv *inventory) differing() []*Schedule {
	var list []*Schedule
	for i := range inv.declared {
		if !inv.settled[i] {
			list = append(list, &inv.declared[i])
		}
	}
	return list
}

// take adds a stored schedule, or replaces it if it was read before, and returns its entry as [newEntry] does.
func (inv *inventory) take(st queue.Stored) (*entry, error) {
	e, settled, err := inv.entry(st)
	if i, ok := inv.place[st.Name]; ok {
		inv.settled[i] = settled
	}
	if settled {
		delete(inv.stored, st.Name)
	} else {
		inv.stored[st.Name] = st
	}
	return e, err
}

// entry makes the entry of a stored schedule, and reports whether the schedule is stored as it is declared.
func (inv *inventory) entry(st queue.Stored) (e *entry, settled bool, err error) {
	i, ok := inv.place[st.Name]
	if !ok || st.Half() || st.Absent() || inv.declared[i].sealed != nil {
		e, err = newEntry(st)
		return e, false, err
	}
	s := &inv.declared[i]
	text, err := s.MarshalJSON()
	if err != nil {
		e, err = newEntry(st)
		return e, false, err
	}
	seals := len(s.Payload) > 0 && st.Seal.First() != "" // an encrypted text is another each time
	if head, ok := inv.heads.before(st.Definition, string(text)); ok && !seals && head.says(Declared) {
		e, err = entryFrom(st, head, s)
		return e, err == nil, err
	}
	d, err := readDefinition(st)
	if err != nil {
		return nil, false, err
	}
	was, err := d.Schedule.MarshalJSON()
	settled = err == nil && bytes.Equal(was, text) && d.Origin == Declared && d.sealed == nil && !d.stale(st.Seal)
	e, err = entryFrom(st, &d.definitionHead, &d.Schedule)
	return e, settled && err == nil, err
}

// readHead reads heads of definitions. It keeps the last one, because the definitions of a release have the same.
type readHead struct {
	text string
	head *definitionHead
}

// before returns the head of a stored definition whose schedule is written as the text. It reports false if the schedule is written
// differently: it may still say the same.
func (r *readHead) before(stored, text string) (head *definitionHead, ok bool) {
	was, ok := strings.CutSuffix(stored, text[len("{"):])
	was, comma := strings.CutSuffix(was, ",")
	if !ok || !comma {
		return nil, false
	}
	if was == r.text && was != "" {
		return r.head, true
	}
	var d definition
	if d.UnmarshalJSON([]byte(was+"}")) != nil || !reflect.DeepEqual(d.Schedule, Schedule{}) { // a field of the schedule is in it
		return nil, false
	}
	r.text, r.head = strings.Clone(was), &d.definitionHead
	return r.head, true
}

// says reports whether it is the head of a definition of that origin whose payload is not encrypted.
func (h *definitionHead) says(origin string) bool {
	return h.V == definitionVersion && h.Origin == origin && h.Sealed == nil
}
