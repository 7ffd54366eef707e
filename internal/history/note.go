package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// maxError is how much of an error is kept with each run that failed.
const maxError = 200

// Notes says which runs are noted, and how much of each. The zero value notes the runs of schedules alone.
type Notes struct {
	// Every notes each run, for an archive: also those of tasks that no schedule made, and of each run also the type, the
	// queue, the due time and the output of its task.
	Every bool
	// Output is how many bytes of an output are kept.
	Output int
}

// Run writes the note of a run that a schedule made. It returns "" for another task.
func Run(t *task.Task, w Word, took time.Duration, err string) string {
	return Notes{}.Run(t, w, took, err, "")
}

// Run writes the note of a run, or returns "" if the run is not noted.
//
//	report@1700000000000 failed 1 1700000000012 <tab> 340 dial tcp: connection refused <tab> http default 1700000000000 12 rows\n
//
// Each part behind a tab is stored apart from the lines: most readers need the lines alone. The last part is there only with Every. The note of a task that no schedule made begins with a tab: it goes into a
// stream of its own, because its ID may look like that of a slot.
func (n Notes) Run(t *task.Task, w Word, took time.Duration, err, output string) string {
	if t.Schedule == "" && !n.Every {
		return ""
	}
	var claimed int64
	if !t.Claimed.IsZero() {
		claimed = t.Claimed.UnixMilli()
	}
	b := make([]byte, 0, len(t.ID)+64+min(len(err), maxError)+n.size(t, output))
	if t.Schedule == "" {
		b = append(b, '\t')
	}
	b = append(append(append(append(b, t.ID...), ' '), w...), ' ')
	b = append(strconv.AppendInt(b, int64(t.Attempt), 10), ' ')
	b = append(strconv.AppendInt(b, claimed, 10), '\t')
	if took > 0 { // zero says that it is not known
		took = max(took, time.Millisecond)
	}
	b = strconv.AppendInt(b, took.Milliseconds(), 10)
	if err != "" {
		b = append(append(b, ' '), oneLine(wording.Cut(err, maxError))...)
	}
	return string(n.appendFacts(b, t, output))
}

// Unread writes that a task is dead whose record cannot be read, or returns "" if that is not noted. Of the task only the ID is
// known for sure.
func (n Notes) Unread(t *task.Task) string {
	b := append([]byte(t.ID), " "+string(Dead)+" 0 0"...)
	_, _, slot := task.ParseSlotID(t.ID)
	switch {
	case slot && n.Every:
		return string(n.appendFacts(append(b, '\t'), t, ""))
	case slot:
		return string(b)
	case n.Every:
		return "\t" + string(n.appendFacts(append(b, '\t'), t, ""))
	}
	return ""
}

// Split takes apart what [Notes.Run] wrote: the line, how long the run took with its error, and the facts for an archive. Other
// says that no schedule made the task.
func Split(note string) (line, more, facts string, other bool) {
	note, other = strings.CutPrefix(note, "\t")
	line, more, _ = strings.Cut(note, "\t")
	more, facts, _ = strings.Cut(more, "\t")
	return line, more, facts, other
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
