package task

import (
	"regexp"
	"strings"

	"github.com/onbeat/onbeat/internal/wording"
)

// maxCause bounds the text of a cause, in bytes.
const maxCause = 200

// Two errors of one cause may differ in moments and durations, and in words with digits.
var (
	differsByTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h))+\b`)
	hasDigit      = regexp.MustCompile(`[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*`)
)

// Cause returns what an error has in common with others like it: its first line, cut to about 200 bytes, with … for each moment, each
// duration, and each word with four digits or more, such as an ID or a port. Shorter numbers stay, because a status and a code of
// exit are numbers too. The cause of a cause is that cause.
func Cause(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	for {
		next := differsByTime.ReplaceAllString(wording.Cut(strings.Join(strings.Fields(text), " "), maxCause), "…")
		next = hasDigit.ReplaceAllStringFunc(next, func(word string) string {
			if digits(word) >= 4 {
				return "…"
			}
			return word
		})
		if next == text { // a cut can make a duration of a longer word
			return next
		}
		text = next
	}
}

func digits(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}
