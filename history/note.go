package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/field"
	"github.com/onbeat/onbeat/task"
)

// Note says what happened to one run, or to a range of a schedule's slots.
type Note struct {
	// Schedule is empty for a task that is no slot.
	Schedule string
	// Slot is that of a single task. From and To are the first and the last of a range of slots that were not pushed.
	Slot, From, To time.Time
	// Word is the outcome. A newer release may write words that this package does not have.
	Word Word
	// Attempt and Claimed tell of the run, if there was one: which it was, and when an instance took it.
	Attempt int
	Claimed time.Time
	// Took is how long the handler ran, and Error what it returned, cut to 200 bytes. Both are zero if they are not known:
	// the instance was lost, or its release was too old to note them.
	Took  time.Duration
	Error string
	// Count is how many slots a range has.
	Count int64
	// Why is the reason given, such as overlap or outage.
	Why string
	// TaskID is empty for a range.
	TaskID string
	// Type is that of the task, of a release that notes it; "" if it is not known.
	Type string

	// The fields that all notes of an entry share.
	Gen      int64     // the generation that ran it, or wrote it; 0 if it is not known
	Instance string    // the instance's ID
	Release  string    // the instance's release
	At       time.Time // when it was written, by the clock of Redis
}

// maxError is how much of an error is kept with each run that failed.
const maxError = 200

// Run writes the note of a run of a slot. It returns "" for a task that is no slot, because the history has no notes of those.
//
//	report@1700000000000 failed 1 1700000000012 <tab> 340 dial tcp: connection refused
//
// The text behind the tab is stored apart from the lines, so that an older release, which does not know it, reads the lines
// as before.
func Run(t *task.Task, w Word, took time.Duration, err string) string {
	if t.Schedule == "" {
		return ""
	}
	var claimed int64
	if !t.Claimed.IsZero() {
		claimed = t.Claimed.UnixMilli()
	}
	b := make([]byte, 0, len(t.ID)+64+min(len(err), maxError))
	b = append(append(append(append(b, t.ID...), ' '), w...), ' ')
	b = append(strconv.AppendInt(b, int64(t.Attempt), 10), ' ')
	b = append(strconv.AppendInt(b, claimed, 10), '\t')
	if took > 0 { // zero says that it is not known
		took = max(took, time.Millisecond)
	}
	b = strconv.AppendInt(b, took.Milliseconds(), 10)
	if err != "" {
		b = append(append(b, ' '), oneLine(field.Cut(err, maxError))...)
	}
	return string(b)
}

// Unread writes that a task whose record cannot be read is dead, if its ID is that of a slot; else it is "".
func Unread(id string) string {
	if _, _, ok := task.ParseSlotID(id); !ok {
		return ""
	}
	return id + " " + string(Dead) + " 0 0"
}

// Range writes what became of slots that were never pushed.
//
//	report@1700000000000..1700000060000 missed 61 outage
func Range(schedule string, from, to time.Time, w Word, n int64, why string) string {
	b := make([]byte, 0, len(schedule)+len(w)+len(why)+56)
	b = strconv.AppendInt(append(append(b, schedule...), '@'), from.UnixMilli(), 10)
	b = strconv.AppendInt(append(b, ".."...), to.UnixMilli(), 10)
	b = append(append(append(b, ' '), w...), ' ')
	b = append(strconv.AppendInt(b, n, 10), ' ')
	return string(append(b, why...))
}

// Join puts two texts together, either of which may be "".
func Join(a, b string) string {
	switch "" {
	case a:
		return b
	case b:
		return a
	}
	return a + "\n" + b
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
