package sqlarchive

import (
	"strings"

	"github.com/onbeat/onbeat/internal/field"
)

const (
	// longestName is more than any valid name or ID has. An index of PostgreSQL takes no more than 2,704 bytes of a whole key.
	longestName = 512
	// longestText bounds what another program may have written into Redis.
	longestText = 1 << 20
)

// name makes a text fit a column that is part of a key.
func name(s string) string { return field.Cut(text(s), longestName) }

// text makes a text one that PostgreSQL takes. Bytes that it refuses become U+FFFD: one bad text must not stop the archive.
func text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return field.Cut(s, longestText)
}
