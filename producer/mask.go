package producer

import (
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/secret"
)

// MaskChanges returns changes of fields with *** in the place of each URL of a heartbeat, and of each value of a payload that lies at a
// secret path.
func MaskChanges(list []FieldChange, paths []string) []FieldChange {
	if list == nil {
		return nil
	}
	out := make([]FieldChange, len(list))
	for i, c := range list {
		if ofHeartbeat(c.Field) {
			c.From, c.To = masked(c.From), masked(c.To)
		} else if place, ok := placeOf(c.Field); ok && len(paths) > 0 {
			c.From, c.To = string(secret.MaskAt([]byte(c.From), place, paths)), string(secret.MaskAt([]byte(c.To), place, paths))
		}
		out[i] = c
	}
	return out
}

func masked(value string) string {
	if value == "" {
		return ""
	}
	return secret.Masked
}

// placeOf reads the name that flatten gave to a part of a payload: its fields, from the outside in.
func placeOf(name string) (place []string, ok bool) {
	rest, ok := strings.CutPrefix(name, "payload")
	if !ok || rest != "" && rest[0] != '.' {
		return nil, false
	}
	for rest != "" {
		rest = rest[1:] // the dot
		part, _, _ := strings.Cut(rest, ".")
		key := part
		if strings.HasPrefix(rest, `"`) { // flatten quotes each name that has a dot or such a quote
			part, _ = strconv.QuotedPrefix(rest)
			key, _ = strconv.Unquote(part)
		}
		place, rest = append(place, key), rest[len(part):]
	}
	return place, true
}
