package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// terminal filters all that the program prints. Other people's names, payloads and errors could move the cursor, change the
// window's title or turn text around on a terminal. Such characters are shown as \u001b and the like. JSON reads that as the same
// character, so that text and JSON can both go through.
type terminal struct {
	w    io.Writer
	mu   sync.Mutex
	lost error // of the first write that failed
}

// Write filters a text and writes it. Callers pass whole characters.
func (t *terminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.w, rendered(string(p))); err != nil {
		return 0, t.lose(err)
	}
	return len(p), nil
}

// unfiltered returns the writer behind a terminal: for the output of a command that we run, and for text that is already filtered.
func unfiltered(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.w
	}
	return w
}

// controlMark begins a control sequence of our own. It is secret, so that no foreign text can contain one.
var controlMark = rand.Text()

// control returns a control sequence such as 31m, for use in a text that goes through a [terminal].
func control(sequence string) string { return controlMark + sequence }

// rendered returns a text in which our control sequences are real and all others are made visible.
func rendered(s string) string {
	first, rest, ours := strings.Cut(s, controlMark)
	if !ours {
		return printable(s)
	}
	var b strings.Builder
	b.WriteString(printable(first))
	for ours {
		var part string
		part, rest, ours = strings.Cut(rest, controlMark)
		end := strings.IndexFunc(part, unicode.IsLetter) + 1 // a sequence ends with one
		b.WriteString("\x1b[" + part[:end] + printable(part[end:]))
	}
	return b.String()
}

// printable returns a text in which every character that a terminal would obey is made visible.
func printable(s string) string {
	if !strings.ContainsFunc(s, isObeyed) && utf8.ValidString(s) {
		return s
	}
	return escaped(s, isObeyed)
}

// oneCell is printable for a text that must stay on one line: it also escapes line feeds and tabs.
func oneCell(s string) string {
	lines := func(r rune) bool { return r == '\n' || r == '\t' || isObeyed(r) }
	if !strings.ContainsFunc(s, lines) && utf8.ValidString(s) {
		return s
	}
	return escaped(s, lines)
}

func escaped(s string, is func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		case r == '\n' && is(r):
			b.WriteString(`\n`)
		case is(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+size])
		}
	}
	return b.String()
}

// isObeyed reports whether a terminal obeys a character and does not show it: control characters of both ranges, and those that
// change the direction of text. Line feeds and tabs are not among them, because we print them too.
func isObeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	}
	return r > 0xff && (unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029)
}
