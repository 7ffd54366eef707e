package database

import (
	"strings"

	"github.com/onbeat/onbeat/internal/wording"
)

// Text makes a text one that a database takes, of limit bytes at most and an ellipsis. PostgreSQL refuses bytes that are not UTF-8,
// and NUL: both become U+FFFD. Every text that callers, handlers or other programs made goes through here, because a row that the
// database refuses could hold up all others.
func Text(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return wording.Cut(s, limit)
}
