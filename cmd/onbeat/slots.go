package main

import (
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/wording"
)

// slotTable makes a table of slots. It has their due times if the slots have jitter.
func (a *app) slotTable(lines []admin.Slot) *table {
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
		row := []any{at(l.Slot), l.Zone, cell{l.In, a.style.dim}}
		if jitter {
			row = append(row, "+"+wording.Span(l.Due.Sub(l.Slot)))
		}
		t.add(append(row, cell{l.Explain, a.style.yellow})...)
	}
	return t
}
