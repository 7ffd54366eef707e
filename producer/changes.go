package producer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The bounds of the changes in an event.
const (
	longestChanges = 4 << 10
	longestValue   = 256
)

// hidden stands in an event for a value of a payload, which may be secret.
const hidden = "…"

// changesMade returns what changes between two schedules, as JSON for an event: a list of [FieldChange], 4 KiB at most. Either
// schedule may be nil. It names the values of a payload that change, and hides the values: events are shown to
// everybody. A revision has the values.
func changesMade(was, want *Schedule) string {
	list, err := changesOf(orEmpty(was), orEmpty(want))
	if err != nil {
		return ""
	}
	for i := range list {
		c := &list[i]
		c.From, c.To = shown(c.Field, c.From), shown(c.Field, c.To)
	}
	return encodeChanges(list)
}

// encodeChanges leaves out the last ones that are too many, and says how many. A payload may have changed in a hundred thousand values.
func encodeChanges(list []FieldChange) string {
	for n := min(len(list), longestChanges/len(`{"field":""},`)); ; n-- {
		part := list[:n:n]
		if left := len(list) - n; left > 0 {
			part = append(part, FieldChange{Field: "…", To: fmt.Sprintf("%d more", left)})
		}
		text, err := json.Marshal(part)
		if err != nil || len(part) == 0 {
			return ""
		}
		if len(text) <= longestChanges || n == 0 {
			return string(text)
		}
	}
}

func orEmpty(s *Schedule) *Schedule {
	if s == nil {
		return &Schedule{}
	}
	return s
}

// shown returns the value of a field as an event shows it.
func shown(field, value string) string {
	if value == "" {
		return ""
	}
	if field == "payload" || strings.HasPrefix(field, "payload.") || ofHeartbeat(field) {
		return hidden
	}
	if len(value) > longestValue {
		return strings.ToValidUTF8(value[:longestValue], "") + hidden
	}
	return value
}
