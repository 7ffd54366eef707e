package queue

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/store"
)

// Last is how far a schedule has come: its last run, and the anchor of its grid. Redis keeps it as text, and scripts
// compare the text.
type Last struct {
	// Rev is the revision. It rises with every change of the schedule and never repeats, even after a deletion.
	Rev int64
	// Slot is the last run: every slot up to it has been pushed, disposed of, or put off. Zero before the first slot.
	Slot time.Time
	// Runs counts the slots that were pushed, less those that were dropped before they ran.
	Runs int64
	// Anchor is slot zero.
	Anchor time.Time
	// Paused: the schedule pushes no slots.
	Paused bool
}

// String returns the text that Redis keeps.
func (l Last) String() string {
	paused := 0
	if l.Paused {
		paused = 1
	}
	return fmt.Sprintf("%d %d %d %d %d", l.Rev, store.Ms(l.Slot), l.Runs, store.Ms(l.Anchor), paused)
}

// ParseLast reads the text of String. The empty string is the zero Last.
func ParseLast(s string) (Last, error) {
	if s == "" {
		return Last{}, nil
	}
	var l Last
	var slot, anchor int64
	var paused int
	if _, err := fmt.Sscanf(s, "%d %d %d %d %d", &l.Rev, &slot, &l.Runs, &anchor, &paused); err != nil {
		return Last{}, fmt.Errorf("last run %q: %w", s, err)
	}
	l.Slot, l.Anchor, l.Paused = store.FromMs(slot), store.FromMs(anchor), paused == 1
	return l, nil
}
