package history

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// size is how many bytes the facts of a run take, about.
func (n Notes) size(t *task.Task, output string) int {
	if !n.Every {
		return 0
	}
	return len(t.Type) + len(t.QueueName()) + 20 + max(min(len(output), n.Output), 0)
}

// appendFacts appends what an archive is told of a run besides: "type queue due output", the last only if there is any. It
// appends nothing of a task whose record could not be read, and whose type is not known.
func (n Notes) appendFacts(b []byte, t *task.Task, output string) []byte {
	if !n.Every || t.Type == "" {
		return b
	}
	var due int64
	if !t.Due.IsZero() {
		due = t.Due.UnixMilli()
	}
	b = append(append(append(b, '\t'), oneWord(t.Type)...), ' ')
	b = append(append(b, oneWord(t.QueueName())...), ' ')
	b = strconv.AppendInt(b, due, 10)
	if output != "" && n.Output > 0 {
		b = appendEscaped(append(b, ' '), wording.Cut(output, n.Output))
	}
	return b
}

// tell reads what appendFacts wrote.
func tell(n *Note, text string) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) < 3 {
		return
	}
	due, _ := strconv.ParseInt(parts[2], 10, 64) // 0 says that it is not known
	n.Type, n.Queue, n.Due = parts[0], parts[1], moment(due)
	if len(parts) == 4 {
		n.Output = unescaped(parts[3])
	}
}

// oneWord returns a name without what would end it. Names have no such characters, unless another program wrote the record.
func oneWord(name string) string {
	return strings.ReplaceAll(oneLine(name), " ", "_")
}

// appendEscaped appends a text on one line: with an escape in the place of a backslash and of each control character, \n \r \t or
// \x and two hex digits. The result is valid UTF-8 without NUL, because PostgreSQL stores no other text.
func appendEscaped(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for _, r := range text { // an invalid byte arrives as U+FFFD
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == 0:
			b = utf8.AppendRune(b, utf8.RuneError)
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'x', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// unescaped reads what appendEscaped wrote. It leaves an escape that it does not know as it is.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		r, n := escape(rest)
		b.WriteString(r)
		text = rest[n:]
	}
}

// escape returns what stands behind a backslash, and how many bytes of it that takes.
func escape(s string) (string, int) {
	if s == "" {
		return `\`, 0
	}
	switch s[0] {
	case '\\':
		return `\`, 1
	case 'n':
		return "\n", 1
	case 'r':
		return "\r", 1
	case 't':
		return "\t", 1
	case 'x':
		if len(s) >= 3 {
			if c, err := strconv.ParseUint(s[1:3], 16, 7); err == nil && c > 0 {
				return string(rune(c)), 3
			}
		}
	}
	return `\`, 0
}
