package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
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
	b := make([]byte, 0, 64)
	for _, n := range [...]int64{l.Rev, store.Ms(l.Slot), l.Runs, store.Ms(l.Anchor)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	if l.Paused {
		return string(append(b, '1'))
	}
	return string(append(b, '0'))
}

// ParseLast reads the text of String. The empty string is the zero Last.
func ParseLast(s string) (Last, error) {
	if s == "" {
		return Last{}, nil
	}
	n, ok := fiveNumbers(s)
	if !ok {
		return Last{}, fmt.Errorf("last run %q: not five numbers", s)
	}
	return Last{Rev: n[0], Slot: store.FromMs(n[1]), Runs: n[2], Anchor: store.FromMs(n[3]), Paused: n[4] == 1}, nil
}

// fiveNumbers reads five numbers with one space between them, and passes over what a newer release may add behind them.
func fiveNumbers(s string) (n [5]int64, ok bool) {
	for i := range n {
		word, rest, more := strings.Cut(s, " ")
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || !more && i < len(n)-1 {
			return n, false
		}
		n[i], s = v, rest
	}
	return n, true
}
