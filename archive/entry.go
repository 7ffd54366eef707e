package archive

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// Entry is the notes that one step wrote.
type Entry struct {
	ID    string // its position: the next reading goes on behind it
	At    time.Time
	Notes []Note
}

// Note says what happened to one run, or to a range of a schedule's slots.
type Note struct {
	// Schedule is empty for a task that is no slot.
	Schedule string
	// Maker is the schedule that made the task: as a slot, by a trigger or by a backfill. It is empty for a range, and for a
	// task that a caller added.
	Maker string
	// Slot is that of a single task. From and To are the first and the last of a range of slots that were not pushed.
	Slot, From, To time.Time
	// Word is the outcome. A newer release may write words that this package does not have.
	Word task.Outcome
	// Attempt and Claimed tell of the run, if there was one: which it was, and when an instance took it.
	Attempt int
	Claimed time.Time
	// Took is how long the handler ran, and Error what it returned, cut to 200 bytes. Both are zero if they are not known:
	// the instance was lost, or its release was too old to note them.
	Took  time.Duration
	Error string
	// Type, Queue and Due are those of the task, and Output is what its handler put out. All are zero unless the release that
	// ran the task noted them, for an archive. Due is zero too if it is not known.
	Type, Queue string
	Due         time.Time
	Output      string
	// Count is how many slots a range has.
	Count int64
	// Why is the reason given, such as overlap or outage.
	Why string
	// TaskID is empty for a range.
	TaskID string

	// The fields that all notes of an entry share.
	Gen      int64     // the generation that ran it, or wrote it; 0 if it is not known
	Instance string    // the instance's ID
	Release  string    // the instance's release
	At       time.Time // when it was written, by the clock of Redis
}
