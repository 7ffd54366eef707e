package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// State is what the table holds of a namespace, with the rows that name none.
type State struct {
	Waiting int           // rows that wait
	Oldest  time.Duration // how long the first of them has waited
	Refused int           // rows that were refused, and stay
	Why     string        // the error of the last of these
}

// Look reads the state of the table. It counts all rows, so it is not for a scrape.
func Look(ctx context.Context, from Opener, namespace string) (State, error) {
	db, err := from.Open()
	if err != nil {
		return State{}, err
	}
	defer func() { _ = db.Close() }()
	d := db.Kind.dialect()
	ctx, done := context.WithTimeout(ctx, d.within)
	defer done()
	there, err := d.there(ctx, db)
	if err != nil {
		return State{}, err
	}
	if !there {
		return State{}, ErrNoTable
	}
	var s State
	var seconds float64
	if err := db.QueryRowContext(ctx, d.state, namespace).Scan(&s.Waiting, &seconds, &s.Refused); err != nil {
		return State{}, fmt.Errorf("look into the outbox: %w", err)
	}
	s.Oldest = time.Duration(seconds * float64(time.Second))
	if s.Refused > 0 {
		if err := db.QueryRowContext(ctx, d.why, namespace).Scan(&s.Why); err != nil {
			return State{}, fmt.Errorf("look into the outbox: %w", err)
		}
	}
	return s, nil
}

// ErrNoTable says that the table of the outbox is not there.
var ErrNoTable = errors.New("the database has no table onbeat_outbox (an instance with outbox.url makes it when it starts, and outbox.Migrate does)")

// lacksTable reports whether a statement failed because the table is not there. The drivers of PostgreSQL tell the state of an
// error; the driver of SQLite has only its text.
func lacksTable(err error) bool {
	const undefinedTable = "42P01"
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState() == undefinedTable
	}
	return strings.Contains(err.Error(), "no such table: onbeat_outbox")
}
