package store

import (
	"strings"
	"testing"
)

// A script replies with an array of numbers and texts. Reading any reply ends, and returns an error if the reply is invalid.
func FuzzReply(f *testing.F) {
	f.Add("i5 sabc n f i-1 i99")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var values []any
		for w := range strings.FieldsSeq(text) {
			switch w[0] {
			case 'i':
				values = append(values, int64(len(w))-2)
			case 's':
				values = append(values, w[1:])
			case 'n':
				values = append(values, nil)
			default:
				values = append(values, []any{w})
			}
		}
		r := NewReply(values)
		for r.More() {
			before := r.at
			_, _ = r.Int(), r.Text()
			if r.Err == nil && r.at <= before {
				t.Fatalf("%q: stuck at %d", text, r.at)
			}
		}
		if all := NewReply(values).Indexes(); len(all) > len(values) {
			t.Fatalf("%d numbers of %d values", len(all), len(values))
		}
	})
}
