package queue

import (
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/history"
)

// appendNotes appends the notes for a stream: how many there are, the places of their settlements, the lines, and what reports
// need besides, each joined; with an archive also the facts for it. So thousands of notes are a few arguments, which the script
// passes on without looking at each. Others picks the notes of tasks that no schedule made.
func appendNotes(args []any, settle []Settlement, order []int, every, others bool) []any {
	size, n := 0, 0
	for i := range settle {
		if isFor(settle[i].Note, others) {
			size += len(settle[i].Note)
			n++
		}
	}
	if n == 0 {
		args = append(args, 0)
		if every {
			args = append(args, "")
		}
		return args
	}
	places, lines, reports := make([]byte, 0, 5*n), make([]byte, 0, size+n), make([]byte, 0, size/4+n)
	var facts []byte
	if every {
		facts = make([]byte, 0, size+n)
	}
	for place, i := range order {
		if !isFor(settle[i].Note, others) {
			continue
		}
		if len(places) > 0 {
			places, lines, reports, facts = append(places, ','), append(lines, '\n'), append(reports, '\n'), append(facts, '\n')
		}
		line, report, fact, _ := history.Split(settle[i].Note)
		places = strconv.AppendInt(places, int64(place+1), 10)
		lines, reports, facts = append(lines, line...), append(reports, report...), append(facts, fact...)
	}
	args = append(args, n, places, lines, reports)
	if every {
		args = append(args, facts)
	}
	return args
}

// isFor reports whether there is a note, and whether it is of a task that no schedule made, or of another one.
func isFor(note string, others bool) bool {
	return note != "" && strings.HasPrefix(note, "\t") == others
}
