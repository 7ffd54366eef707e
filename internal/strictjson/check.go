package strictjson

import (
	"bytes"
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/onbeat/onbeat/task"
)

// Check refuses JSON that encoding/json would accept and change: of two equal keys in an object it keeps the last, and it
// replaces bytes that are not UTF-8 by U+FFFD. The data must be valid JSON otherwise. If fold is not nil, it decides which keys of
// the outermost object are equal. root is the field that the document is; "" if it is a whole one, whose fields have no prefix.
func Check(data []byte, root string, fold func(string) string) error {
	w := &walk{data: data, root: root, fold: fold}
	for l := (lexer{data: data}); ; {
		k, raw := l.next()
		if raw == nil {
			return nil
		}
		if err := w.take(k, raw, l.at-len(raw)); err != nil {
			return err
		}
	}
}

// walk is a walk through a JSON document.
type walk struct {
	data []byte
	root string
	fold func(string) string
	open []*level
}

// level is an object or a list that the walk is in. Of the keys of an object it has hashes: an object of millions of short keys would
// take many times its own size as text.
type level struct {
	keys    map[uint64]int // hash → where the key is; nil: a list
	key     []byte         // the key of the next value, with its quotes
	isValue bool           // the next token of an object is a value, not a key
	n       int            // how many values have come so far
}

var seed = maphash.MakeSeed()

// take checks the token at a place of the data.
func (w *walk) take(k kind, raw []byte, place int) error {
	if k == '}' || k == ']' {
		w.open = w.open[:max(len(w.open)-1, 0)]
		return nil
	}
	var in *level
	if len(w.open) > 0 {
		in = w.open[len(w.open)-1]
	}
	isKey := in != nil && in.keys != nil && !in.isValue
	if isKey {
		in.key, in.isValue = raw, true
	} else if in != nil {
		in.n++
		in.isValue = false
	}
	isText := k == '"'
	switch {
	case isText && !utf8.Valid(raw):
		return w.refuse("not UTF-8", "save the file as UTF-8")
	case isText && halfPair(raw):
		return w.refuse("has half a surrogate pair, which is not a character", `\ud83d\ude00 is one character, \ud83d alone is not`)
	case isKey:
		hash := maphash.Bytes(seed, w.name(raw))
		if first, known := in.keys[hash]; known && bytes.Equal(w.name(raw), w.name(tokenAt(w.data, first))) {
			return w.refuse("appears twice", "write each key once: one of the two values would be lost")
		}
		in.keys[hash] = place
	case k == '{':
		w.open = append(w.open, &level{keys: map[uint64]int{}})
	case k == '[':
		w.open = append(w.open, &level{})
	}
	return nil
}

// name returns what a key is compared by.
func (w *walk) name(raw []byte) []byte {
	switch {
	case w.fold != nil && len(w.open) == 1:
		return []byte(w.fold(textOf(raw)))
	case bytes.IndexByte(raw, '\\') >= 0:
		return []byte(textOf(raw))
	}
	return raw[1 : len(raw)-1]
}

// refuse returns an error with the path of the walk's present place.
func (w *walk) refuse(reason, hint string) error {
	var path strings.Builder
	path.WriteString(w.root)
	for _, l := range w.open {
		if l.keys == nil {
			path.WriteString("[" + strconv.Itoa(l.n-1) + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(shownKey(keyText(l.key)))
		if path.Len() > 256 {
			path.WriteString("…")
			break
		}
	}
	if path.Len() == 0 {
		path.WriteString("task")
	}
	return &task.FieldError{Field: path.String(), Reason: reason, Hint: hint}
}

// keyText returns what a key says, with the bytes that are not UTF-8 if it has any.
func keyText(raw []byte) string {
	if len(raw) < 2 || utf8.Valid(raw) {
		return textOf(raw)
	}
	return string(raw[1 : len(raw)-1])
}

// longestShown is the most bytes of a key or a number that an error shows: a document may be one long key.
const longestShown = 128

// shownKey returns a key as a path shows it: cut, and in quotes if it is not a plain word.
func shownKey(key string) string {
	if len(key) > longestShown {
		return strconv.QuoteToASCII(key[:longestShown]) + "…"
	}
	plain := key != "" && utf8.ValidString(key) && !strings.ContainsFunc(key, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
	if plain {
		return key
	}
	return strconv.QuoteToASCII(key)
}

// Fold returns a key in the form in which encoding/json compares it with the name of a field.
func Fold(key string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, key)
}

// paired matches JSON text in which each escaped surrogate has its other half.
var paired = regexp.MustCompile(`(?is)^(?:[^\\]|\\(?:[^u]|u(?:[^d]|d(?:[0-7]|[89ab]..\\ud[c-f]))))*$`)

// halfPair reports whether JSON text has an escaped surrogate without its other half.
func halfPair(raw []byte) bool { return bytes.Contains(raw, []byte(`\u`)) && !paired.Match(raw) }
