package admin

import (
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
)

// Slot is one slot of a rule.
type Slot struct {
	Slot    time.Time `json:"slot"` // in the rule's zone
	Due     time.Time `json:"due"`  // the slot with its jitter
	In      string    `json:"in"`   // how far from now, such as "in 5m0s"
	Zone    string    `json:"zone"`
	Explain string    `json:"explain,omitempty"` // what daylight saving does to the slot
}

// Preview is a rule in words, and slots of it.
type Preview struct {
	Rule string `json:"rule"`
	// Paused is set for a schedule that is paused: it runs none of these slots until it is resumed.
	Paused bool   `json:"paused,omitempty"`
	Slots  []Slot `json:"slots"`
}

// PreviewOf returns the first slots of a grid after a moment. The name decides their jitter.
func PreviewOf(r schedule.Rule, name string, grid schedule.Grid, after, now time.Time, count int) Preview {
	p := Preview{Rule: schedule.Describe(r), Slots: []Slot{}}
	for slot := grid.Next(after); !slot.IsZero() && len(p.Slots) < count; slot = grid.Next(slot) {
		local := slot.In(r.Location())
		zone, _ := local.Zone()
		p.Slots = append(p.Slots, Slot{
			Slot: local, Due: r.JitterFor(name, slot).In(r.Location()), In: wording.Ago(slot, now), Zone: zone, Explain: r.Explain(slot),
		})
	}
	return p
}
