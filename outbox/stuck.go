package outbox

import (
	"errors"
	"strings"
	"time"
)

const (
	// passFor is how long a mover passes over a row that the database neither removes nor changes.
	passFor = time.Minute
	// maxStuck bounds how many such rows a mover knows of. With more of them it moves none: it is not for a row that all of them stay.
	maxStuck = 10_000
)

var errStuck = errors.New("the database neither removes rows of the outbox nor notes why they are refused (the mover needs SELECT, UPDATE and DELETE)")

// stuck are rows that a mover passes over, by their IDs: until when.
type stuck map[int64]time.Time

func (s stuck) pass(id int64, now time.Time) { s[id] = now.Add(passFor) }

// passed returns the rows to pass over, and forgets those whose time is up.
func (s stuck) passed(now time.Time) []int64 {
	ids := make([]int64, 0, len(s))
	for id, until := range s {
		if now.After(until) {
			delete(s, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

// breaksConstraint reports whether the database refuses what rows hold or what is to become of them, and not the connection. The
// drivers of PostgreSQL tell the state of an error; that of SQLite has only its text.
func breaksConstraint(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		class := state.SQLState()[:min(2, len(state.SQLState()))]
		return class == "23" || class == "P0"
	}
	return strings.Contains(err.Error(), "constraint failed")
}
