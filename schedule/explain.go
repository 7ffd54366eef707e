package schedule

import "time"

// Explain says in one line how a change of the clock affects the slot, or returns "".
func (r Rule) Explain(slot time.Time) string { return "" }

// Describe returns the rule in one line.
func Describe(r Rule) string { return "" }
