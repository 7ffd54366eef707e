package secret

import (
	"sync"
)

// Masked stands for a value that is not shown.
const Masked = "***"

// shortest is the length of the shortest value without a name that is looked for within a text: a shorter one would be found
// anywhere.
const shortest = 3

// mostValues is the most values of a payload that are looked for. With more of them a text is left out.
const mostValues = 1000

const tooMany = "(not shown: the payload has more than 1,000 secret values)"

// Set is a set of secret texts. The zero value and a nil Set have none. It finds a secret as it is; in other case, or with other
// white space; with the escapes of JSON, Go, URLs or HTML, one within the other too; in base64, also as a part of what is encoded; and
// in hex. It finds the parts of a secret too, see [Set.parts]: words, also decoded from base64, and parts of a URL. It also finds the
// start of a secret or a part: its first 8 bytes anywhere, and 4 at the end of a text. Finding takes time by the length of the text and of the secrets.
type Set struct {
	all    string // in place of each text
	values []value
	forms  []form // by [Set.spellings]
	once   sync.Once
}

// value is a secret, and the text that is shown in its place.
type value struct{ text, shown string }

// OfPayload returns the values of a payload that lie at secret paths; nil if there are none.
func OfPayload(payload []byte, paths []string) *Set {
	values := Values(payload, paths)
	if len(values) == 0 {
		return nil
	}
	if len(values) > mostValues {
		return &Set{all: tooMany}
	}
	s := &Set{}
	s.Add(values...)
	return s
}

// Add adds secrets. It is for before the first use.
func (s *Set) Add(texts ...string) {
	for _, text := range texts {
		s.values = append(s.values, value{text, Masked})
	}
}

// AddNamed adds the value of an environment variable, in whose place a text has ${NAME}.
func (s *Set) AddNamed(name, text string) {
	s.values = append(s.values, value{text, "${" + name + "}"})
}

// Longest is about how many bytes the longest of the secrets has where it is escaped.
func (s *Set) Longest() (n int) {
	if s != nil {
		for _, v := range s.values {
			n = max(n, 3*len(v.text))
		}
	}
	return n
}

// Empty reports whether there are no secrets.
func (s *Set) Empty() bool { return s == nil || s.all == "" && len(s.values) == 0 }

// Hide returns a text without the secrets.
func (s *Set) Hide(text string) string { return s.HideStart(text, len(text)) }

// HideStart is [Set.Hide] for the first limit bytes of a text. Of a secret that begins within the limit nothing is shown, so the
// text has to go on behind it for [Set.Longest].
func (s *Set) HideStart(text string, limit int) string {
	limit = min(limit, len(text))
	switch {
	case s.Empty() || text == "":
		return text[:limit]
	case s.all != "":
		return s.all
	}
	for _, v := range s.values {
		if v.text == text {
			return v.shown
		}
	}
	return s.hidden(text, limit, false)
}

// HideEnds is [Set.Hide] for a text whose beginning is missing: a secret may have been cut there, so it finds the ends of secrets too.
func (s *Set) HideEnds(text string) string {
	if s.Empty() || s.all != "" {
		return s.Hide(text)
	}
	return s.hidden(text, len(text), true)
}
