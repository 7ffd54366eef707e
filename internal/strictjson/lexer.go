package strictjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// lexer cuts valid JSON into tokens. [json.Decoder.Token] does that too, but makes an error, which it drops, for each string.
type lexer struct {
	data []byte
	at   int
}

// kind is the first byte of a token: one of {}[]", or another for a number, true, false and null.
type kind = byte

// next returns the next token. It returns no bytes at the end. Commas and colons are passed over.
func (l *lexer) next() (k kind, raw []byte) {
	if l.peek() == 0 {
		return 0, nil
	}
	from := l.at
	switch k = l.data[from]; k {
	case '{', '}', '[', ']':
		l.at++
	case '"':
		l.at++
		for l.at < len(l.data) && l.data[l.at] != '"' {
			if l.data[l.at] == '\\' {
				l.at++
			}
			l.at++
		}
		l.at = min(l.at+1, len(l.data))
	default:
		if n := bytes.IndexAny(l.data[from:], " \t\r\n,]}"); n >= 0 {
			l.at += max(n, 1)
		} else {
			l.at = len(l.data)
		}
	}
	return k, l.data[from:l.at]
}

// peek returns the kind of the next token, or 0 at the end.
func (l *lexer) peek() kind {
	for ; l.at < len(l.data); l.at++ {
		switch c := l.data[l.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// more reports whether the list or object that the lexer is in has another value.
func (l *lexer) more() bool {
	k := l.peek()
	return k != 0 && k != ']' && k != '}'
}

// skip passes over a whole value.
func (l *lexer) skip() {
	for depth := 0; ; {
		switch k, raw := l.next(); {
		case raw == nil:
			return
		case k == '{' || k == '[':
			depth++
		case k == '}' || k == ']':
			depth--
		}
		if depth <= 0 {
			return
		}
	}
}

// tokenAt returns the token that begins at a place.
func tokenAt(data []byte, place int) []byte {
	l := lexer{data: data, at: place}
	_, raw := l.next()
	return raw
}

// List returns the values of the list that the object in data has under a name, each as it is written there, and the object with an
// empty list in its place. If there are more than most values, List returns most+1 of them. It copies nothing else, so it is the first
// look at a document that may be too large. The data must be valid JSON. A value that is no list stays where it is, and without the name
// List returns no object.
func List(data []byte, name string, most int) (values [][]byte, rest []byte) {
	l := lexer{data: data}
	if k, _ := l.next(); k != '{' {
		return nil, nil
	}
	for l.more() {
		if _, key := l.next(); textOf(key) != name {
			l.skip()
			continue
		}
		if l.peek() != '[' {
			return nil, data
		}
		from := l.at
		for l.at++; l.more(); {
			value := l.at
			if l.skip(); len(values) == most+1 {
				continue
			}
			values = append(values, data[value:l.at])
		}
		l.next()
		return values, slices.Concat(data[:from], []byte("[]"), data[l.at:])
	}
	return nil, nil
}

// textOf returns what a string says, as encoding/json reads it.
func textOf(raw []byte) (text string) {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	_ = json.Unmarshal(raw, &text)
	return text
}
