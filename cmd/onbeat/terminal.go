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

// terminal is where text becomes a terminal's, in the end: all that the program prints goes through one. What others put
// into names, payloads and errors could move the cursor, retitle the window or turn text around there. It is shown as
// \u001b and the like, which JSON reads as the same character, so that both may go through.
type terminal struct {
	w    io.Writer
	mu   sync.Mutex
	lost error // of the first write that failed
}

// Write filters a text. It is called with whole characters.
func (t *terminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.w, rendered(string(p))); err != nil {
		return 0, t.lose(err)
	}
	return len(p), nil
}

// unfiltered is what is behind a terminal: for a command's own output, and for what is filtered already.
func unfiltered(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.w
	}
	return w
}

// controlMark begins a control sequence of our own. Nobody else can know it, so nobody else can write one.
var controlMark = rand.Text()

// control is a sequence such as 31m, in a text for a [terminal].
func control(sequence string) string { return controlMark + sequence }

// rendered is a text with our control sequences made real, and all others made visible.
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

// printable is a text with all made visible that a terminal would obey.
func printable(s string) string {
	if !strings.ContainsFunc(s, isObeyed) && utf8.ValidString(s) {
		return s
	}
	return escaped(s, isObeyed)
}

// oneCell is printable for text that has a line or a part of one to itself.
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

// isObeyed tells what a terminal does not show: control characters of either range, and those that turn the direction of
// text. Line feeds and tabs are ours as well.
func isObeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	}
	return r > 0xff && (unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029)
}
