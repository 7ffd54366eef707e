package archive

import (
	"time"
)

// Position is how far a namespace has been archived. It is kept in the database, and moves with the rows that it stands for.
type Position struct {
	// History, Runs and Events are the IDs of the last entries that are archived: of the history, of the runs that no schedule
	// made, and of the events. They are "" before the first.
	History, Runs, Events string
	// Schedules is the version of the last change of a schedule whose revisions are archived.
	Schedules int64
	// Read counts the entries of the history and of runs that were archived, and Lost those that were lost before they could be
	// read.
	Read, Lost int64
	// HistoryAdded and RunsAdded are how many entries Redis had ever added to those streams up to there; 0 if it does not tell.
	HistoryAdded, RunsAdded int64
	// Since is the moment from which on the history was complete when following it began. Zero: from its beginning.
	Since time.Time
	// At is when the position moved last, by the clock of the caller.
	At time.Time
}

// Batch is what one call of [Archive.Add] archives.
type Batch struct {
	Entries   []Entry // of the history, and of the runs that no schedule made
	Events    []Event
	Revisions []Revision
	Losses    []Loss
	// Schedules are those that changed, as they are now.
	Schedules []Schedule
	// Next is the position behind all of these.
	Next Position
}

// Event is a state change of a namespace, as it was in the stream of events.
type Event struct {
	ID     string // its place in the stream
	At     time.Time
	Kind   string            // "joined", "leader", "lost", ...
	Fields map[string]string // all other fields
}

// Revision is what a schedule said from a change on.
type Revision struct {
	Schedule string
	Number   int64
	At       time.Time // zero if it is not known
	What     string    // made, changed, deleted, retired, restored or reverted
	Who      string    // "" if nobody is known
	// Definition is what the schedule said; "" if it was deleted or retired.
	Definition string
}

// Schedule is a schedule after its last change that is archived. Together with its runs, this brings the schedule back if Redis loses it.
type Schedule struct {
	Name string
	// Definition is encrypted if it was in Redis. It is "" for a schedule that was deleted or retired: the archive drops that one.
	Definition string
	Last       string // its last run then, as it was in Redis
	Pause      string // what was noted of its pause, as it was in Redis: since when, by whom and why; "" if nothing was
}

// Loss is a span of which entries are missing: Redis dropped them before they were archived, or they went with the tables.
type Loss struct {
	From, To time.Time
	Stream   string // history, runs, events or revisions
	Entries  int64  // how many entries were lost; 0 if Redis cannot tell
}
