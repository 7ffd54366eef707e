package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Pause says since when a schedule is paused, by whom and why.
type Pause struct {
	At     time.Time
	By     string // the actor; "" if nobody is known
	Reason string // "" if none was given
}

// LongestReason is how many characters the reason of a pause has at most.
const LongestReason = 200

// CheckReason returns a [*task.FieldError] for a reason, of a pause or a bulk action, that is too long, or has control characters.
func CheckReason(reason string) error {
	bad := &task.FieldError{Field: "reason", Value: reason}
	switch {
	case !utf8.ValidString(reason):
		bad.Reason, bad.Hint = "not UTF-8", "write it in UTF-8"
	case utf8.RuneCountInString(reason) > LongestReason:
		bad.Value = ""
		bad.Reason, bad.Hint = fmt.Sprintf("longer than %d characters", LongestReason), "say it in one short sentence"
	case strings.ContainsFunc(reason, unicode.IsControl):
		bad.Reason, bad.Hint = "it has control characters", "write one line of plain text"
	default:
		return nil
	}
	return bad
}

// ParsePause reads what change.lua notes of a pause: "when who", a line break, and the reason. It reports false for a text that is no
// such note.
func ParsePause(text string) (p Pause, ok bool) {
	head, reason, ok := strings.Cut(text, "\n")
	when, by, both := strings.Cut(head, " ")
	ms, err := strconv.ParseInt(when, 10, 64)
	if !ok || !both || err != nil {
		return p, false
	}
	return Pause{At: store.FromMs(store.ClampMs(float64(ms))), By: by, Reason: reason}, true
}
