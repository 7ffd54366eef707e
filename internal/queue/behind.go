package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// Behind is the slots that a schedule is behind with: they were missed and are still to be pushed, while slots on time go
// on. Redis keeps it as text, "anchor times" and then "from to" for each span, and scripts compare the text.
type Behind struct {
	// Anchor and Times name the grid of the slots. An older release, which does not know this record, may have changed the
	// schedule's grid since.
	Anchor time.Time
	Times  string
	Spans  []Span // ascending
}

// Span is the slots after From, up to and including To.
type Span struct{ From, To time.Time }

// String returns the text that Redis keeps: "" if there is no slot to push.
func (b Behind) String() string {
	if len(b.Spans) == 0 {
		return ""
	}
	text := strconv.FormatInt(store.Ms(b.Anchor), 10) + " " + b.Times
	for _, s := range b.Spans {
		text += fmt.Sprintf(" %d %d", store.Ms(s.From), store.Ms(s.To))
	}
	return text
}

// ParseBehind reads the text of String. The empty string is the zero Behind. It returns an error for any other text.
func ParseBehind(text string) (Behind, error) {
	var b Behind
	if text == "" {
		return b, nil
	}
	words := strings.Split(text, " ")
	if len(words) < 4 || len(words)%2 != 0 {
		return Behind{}, fmt.Errorf("behind with %q: %d words", text, len(words))
	}
	times := make([]time.Time, 0, len(words)-1)
	for _, word := range slices.Delete(slices.Clone(words), 1, 2) {
		ms, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return Behind{}, fmt.Errorf("behind with %q: %w", text, err)
		}
		times = append(times, store.FromMs(ms))
	}
	b.Anchor, b.Times = times[0], words[1]
	for pair := range slices.Chunk(times[1:], 2) {
		b.Spans = append(b.Spans, Span{pair[0], pair[1]})
	}
	return b, nil
}
