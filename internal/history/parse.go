package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/task"
)

// ParseEntry reads an entry of the streams history or runs, by its ID and fields. It leaves out invalid parts, or keeps them
// as they are.
func ParseEntry(id string, values map[string]any) Entry {
	text := func(name string) string {
		s, _ := values[name].(string)
		return s
	}
	e := Entry{ID: id, At: At(id)}
	gen, _ := strconv.ParseInt(text("gen"), 10, 64)
	add := func(n Note) *Note {
		n.Gen, n.At, n.Instance, n.Release = gen, e.At, text("instance"), text("release")
		e.Notes = append(e.Notes, n)
		return &e.Notes[len(e.Notes)-1]
	}
	for line := range strings.SplitSeq(text("slots"), "\n") {
		if line != "" {
			add(Parse(line))
		}
	}
	more, facts := strings.Split(text("more"), "\n"), strings.Split(text("facts"), "\n")
	read := func(lines string, parse func(string) Note) {
		for i, line := range strings.Split(lines, "\n") {
			if line == "" {
				continue
			}
			n := add(parse(line))
			if i < len(more) {
				report(n, more[i])
			}
			if i < len(facts) {
				tell(n, facts[i])
			}
		}
	}
	read(text("runs"), parse)
	read(text("tasks"), parseTask) // an entry has one of the two
	return e
}

// At is the clock of Redis in the ID of an entry.
func At(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return moment(n)
}

// Before reports whether the entry with the ID a was written before that with the ID b, in one stream.
func Before(a, b string) bool {
	ams, aseq := place(a)
	bms, bseq := place(b)
	return ams < bms || ams == bms && aseq < bseq
}

// place takes an ID apart. A part that it cannot read is 0.
func place(id string) (ms, seq uint64) {
	head, tail, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(head, 10, 64)
	seq, _ = strconv.ParseUint(tail, 10, 64)
	return ms, seq
}

// report reads how long a run took, and what it failed with.
func report(n *Note, text string) {
	took, err, _ := strings.Cut(text, " ")
	ms, bad := strconv.ParseInt(took, 10, 64)
	if bad != nil || ms < 0 || ms > lastMs {
		return
	}
	n.Took, n.Error = time.Duration(min(ms, maxTook))*time.Millisecond, err
}

// maxTook is the longest time that a Duration holds, in milliseconds.
const maxTook = int64(1<<63-1) / int64(time.Millisecond)

// Parse reads what [Notes.Run] or [Range] wrote. A line that is not as expected is left as it is, in TaskID.
func Parse(line string) Note {
	line, more, facts, other := Split(line)
	n := parse(line)
	if other {
		n = parseTask(line)
	}
	report(&n, more)
	tell(&n, facts)
	return n
}

// parse reads the line of a run that a schedule made, or of a range.
func parse(line string) Note {
	if n, ok := parseRange(line); ok {
		return n
	}
	n := parseTask(line)
	if i := strings.IndexAny(n.TaskID, "@!"); i > 0 { // the ID of a slot, a trigger or a backfill; names of schedules have neither
		n.Maker = n.TaskID[:i]
	}
	if schedule, slot, ok := task.ParseSlotID(n.TaskID); ok {
		n.Schedule, n.Slot = schedule, slotTime(slot.UnixMilli())
	}
	return n
}

// parseTask reads the line of a run, and takes its ID for nothing but an ID.
func parseTask(line string) Note {
	// An ID may have spaces, so it is read from the end.
	n := Note{TaskID: line}
	rest, last, ok := cutLast(line)
	if !ok {
		return n
	}
	if head, attempt, ok := cutLast(rest); ok {
		id, word, ok := cutLast(head)
		a, err1 := strconv.Atoi(attempt)
		ms, err2 := strconv.ParseInt(last, 10, 64)
		if ok && err1 == nil && err2 == nil {
			n.TaskID, n.Word, n.Attempt, n.Claimed = id, Word(word), a, moment(ms)
		} else {
			n.TaskID, n.Word, n.Why = head, Word(attempt), last
		}
	} else {
		n.TaskID, n.Word = rest, Word(last)
	}
	return n
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ' ')
	if i <= 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// parseRange reads <schedule>@<from ms>..<to ms> <word> <count> [why].
func parseRange(line string) (n Note, ok bool) {
	parts := strings.SplitN(line, " ", 4)
	dots := strings.LastIndex(parts[0], "..") // a name may have dots
	if dots < 0 || len(parts) < 3 {
		return n, false
	}
	schedule, from, ok := task.ParseSlotID(parts[0][:dots])
	end, err1 := strconv.ParseInt(parts[0][dots+2:], 10, 64)
	count, err2 := strconv.ParseInt(parts[2], 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return n, false
	}
	n = Note{Schedule: schedule, From: slotTime(from.UnixMilli()), To: slotTime(end), Word: Word(parts[1]), Count: count}
	if len(parts) == 4 {
		n.Why = parts[3]
	}
	return n, true
}

// lastMs is the end of the year 9999: later times cannot be written as RFC 3339.
const lastMs = 253402300799999

// slotTime returns a time moved into the years 1970 to 9999, because another program may have damaged it. moment does the
// same, but returns the zero time for 0.
func slotTime(ms int64) time.Time { return time.UnixMilli(max(0, min(ms, lastMs))).UTC() }

func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return slotTime(ms)
}
