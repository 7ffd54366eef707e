package main

import (
	"time"

	"github.com/onbeat/onbeat/schedule"
)

// slotLine is one slot of a rule as people see it.
type slotLine struct {
	Slot    time.Time `json:"slot"` // in the rule's zone
	Due     time.Time `json:"due"`  // with its jitter
	In      string    `json:"in"`
	Zone    string    `json:"zone"`
	Explain string    `json:"explain,omitempty"`
}

// slotLines are the first slots after a moment.
func slotLines(r schedule.Rule, name string, grid schedule.Grid, after, now time.Time, count int) []slotLine {
	lines := []slotLine{}
	for slot := grid.Next(after); !slot.IsZero() && len(lines) < count; slot = grid.Next(slot) {
		local := slot.In(r.Location())
		zone, _ := local.Zone()
		lines = append(lines, slotLine{
			Slot: local, Due: r.JitterFor(name, slot).In(r.Location()), In: ago(slot, now), Zone: zone, Explain: r.Explain(slot),
		})
	}
	return lines
}

func (a *app) slotTable(lines []slotLine, now time.Time) *table {
	jitter := false
	for _, l := range lines {
		jitter = jitter || !l.Due.Equal(l.Slot)
	}
	head := []string{"SLOT", "ZONE", "IN", ""}
	if jitter {
		head = []string{"SLOT", "ZONE", "IN", "DUE", ""}
	}
	t := a.table(head...)
	for _, l := range lines {
		row := []any{at(l.Slot), l.Zone, cell{ago(l.Slot, now), a.style.dim}}
		if jitter {
			row = append(row, "+"+span(l.Due.Sub(l.Slot)))
		}
		t.add(append(row, cell{l.Explain, a.style.yellow})...)
	}
	return t
}
