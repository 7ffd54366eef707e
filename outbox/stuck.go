package outbox

import (
	"errors"
	"strings"
	"time"
)

const (
	// passFor is how long a mover passes over a row that the database neither removes nor changes, or that Redis does not take for now.
	// The row of a partition that is away has its turn as soon as that answers.
	passFor = time.Minute
	// maxStuck bounds how many such rows a mover knows of. With more of them it moves none: no single row is the reason then.
	maxStuck = 10_000
)

var errStuck = errors.New("too many rows of the outbox stay (the log and the events \"outbox stuck\" say why; the mover needs SELECT, UPDATE and DELETE)")

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

// doubts are rows that failed alone for an unknown reason.
type doubts struct {
	moved  int           // how many batches had a row that was moved
	series int           // how many rows failed since the last of them
	rows   map[int64]int // by their IDs: moved, when the row failed
}

// guilty reports whether a row failed before, and others were moved since. It notes that the row fails now.
func (d *doubts) guilty(id int64) bool {
	d.series++
	if before, known := d.rows[id]; known && before < d.moved {
		delete(d.rows, id)
		return true
	}
	if d.rows == nil || len(d.rows) >= maxStuck { // rows that other movers moved are never asked for again
		d.rows = map[int64]int{}
	}
	d.rows[id] = d.moved
	return false
}

// movedOn notes that rows were moved.
func (d *doubts) movedOn(rows []row) {
	if len(rows) == 0 {
		return
	}
	d.moved, d.series = d.moved+1, 0
	for _, r := range rows {
		delete(d.rows, r.id)
	}
}

// breaksConstraint reports whether the database refuses what rows hold or what is to become of them, and not the connection. The
// drivers of PostgreSQL tell the state of an error; the driver of SQLite has only its text.
func breaksConstraint(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		class := state.SQLState()[:min(2, len(state.SQLState()))]
		return class == "23" || class == "P0"
	}
	return strings.Contains(err.Error(), "constraint failed")
}
