package history

import (
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/task"
)

// The types that users meet too.
type (
	// Word is written into the history as it is.
	Word = task.Outcome
	// Note is read from the history, and written by [Notes] and [Range].
	Note = archive.Note
	// Entry is read by [ParseEntry].
	Entry = archive.Entry
)

// The outcomes of a run. [Skipped], [Missed] and [Cancelled] are also outcomes of a slot that was pushed and did not run.
const (
	Done      Word = "done"
	Failed    Word = "failed"    // it is to be retried
	Dead      Word = "dead"      // its last attempt failed
	Lost      Word = "lost"      // its instance was lost while it ran
	Cancelled Word = "cancelled" // by hand
	Returned  Word = "returned"  // handed back at shutdown; the attempt does not count
	Skipped   Word = "skipped"   // by its overlap policy, or as too many wait
	Missed    Word = "missed"    // nothing led when it was due
)

// The outcomes of a range of slots that were never pushed. [Missed] and [Skipped] are outcomes of ranges too.
const (
	Paused    Word = "paused"
	Changed   Word = "changed"   // its rule was, or it had not been made yet
	Deleted   Word = "deleted"   // the schedule was
	Retired   Word = "retired"   // the schedule was: a newer release does not declare it
	Forgotten Word = "forgotten" // Redis lost what became of them
	// Was says nothing of slots: it keeps the rule that a schedule had, in Why, from its anchor on.
	Was Word = "was"
)

// Words are all of them.
func Words() []Word {
	return []Word{Done, Failed, Dead, Lost, Cancelled, Returned, Skipped, Missed, Paused, Changed, Deleted, Retired, Forgotten, Was}
}

// ByOverlap is why a slot was [Skipped] by the overlap policy of its schedule: a run before it went on.
const ByOverlap = "overlap"

// SlotsOf returns how many slots a note is about.
func SlotsOf(n *Note) int64 {
	if n.TaskID == "" {
		return n.Count
	}
	return 1
}
