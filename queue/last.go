package queue

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/store"
)

// Last is how far a schedule has come: its last run, and what its grid hangs on. It lies in Redis as text, and is
// compared there as text.
type Last struct {
	// Rev rises with every change of the schedule, and never repeats, even over deletion.
	Rev int64
	// Slot: every slot up to it has been pushed or disposed of. Zero before the first.
	Slot time.Time
	// Runs counts the slots pushed.
	Runs int64
	// Anchor is slot zero.
	Anchor time.Time
	// Paused schedules push nothing.
	Paused bool
}

// String is the text that lies in Redis.
func (l Last) String() string {
	paused := 0
	if l.Paused {
		paused = 1
	}
	return fmt.Sprintf("%d %d %d %d %d", l.Rev, store.Ms(l.Slot), l.Runs, store.Ms(l.Anchor), paused)
}

// ParseLast reads what String wrote; the empty string is the zero Last.
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
