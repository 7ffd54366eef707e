package sqlarchive

import (
	"math"

	"github.com/onbeat/onbeat/internal/database"
)

const (
	// longestName is more than any valid name or ID has. An index of PostgreSQL takes no more than 2,704 bytes of a whole key.
	longestName = 512
	// longestText bounds what another program may have written into Redis.
	longestText = 1 << 20
)

// name makes a text fit a column that is part of a key.
func name(s string) string { return database.Text(s, longestName) }

// text makes a text fit any other column.
func text(s string) string { return database.Text(s, longestText) }

// whole does not cut a definition: nothing could be restored from the rest of it.
func whole(s string) string { return database.Text(s, math.MaxInt) }
