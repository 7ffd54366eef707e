package queue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// Behind is the slots that a schedule is behind with: spans of slots that were missed and are still to be pushed, while slots
// on time go on. They are ascending. Redis keeps them as text, "from to" for each span, and scripts compare the text.
type Behind []Span

// Span is the slots after From, up to and including To.
type Span struct{ From, To time.Time }

// String returns the text that Redis keeps: "" if there is no slot to push.
func (b Behind) String() string {
	words := make([]string, len(b))
	for i, s := range b {
		words[i] = fmt.Sprintf("%d %d", store.Ms(s.From), store.Ms(s.To))
	}
	return strings.Join(words, " ")
}

// ParseBehind reads the text of String. It returns an error for any other text.
func ParseBehind(text string) (Behind, error) {
	if text == "" {
		return nil, nil
	}
	words := strings.Split(text, " ")
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("behind with %q: %d words", text, len(words))
	}
	b := make(Behind, len(words)/2)
	for i := range b {
		from, err1 := strconv.ParseInt(words[2*i], 10, 64)
		to, err2 := strconv.ParseInt(words[2*i+1], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("behind with %q: %w", text, err)
		}
		b[i] = Span{store.FromMs(from), store.FromMs(to)}
	}
	return b, nil
}
