package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPaths is how many paths of a payload can be secret.
const MaxPaths = 100

// longestPath is the most bytes of a path.
const longestPath = 256

// CheckPath returns the reason why a text is no path of a payload, or "". A path names the fields of JSON from the outside in, with
// dots between them: card.number, headers.Authorization, items.*.token. A * is every field, or every item of a list; a number is one
// item; \. is a dot that is part of a name. Upper and lower case are the same. A path that is * or . alone is the whole payload.
// Fields below a path are secret too.
func CheckPath(path string) (reason string) {
	switch {
	case path == "":
		return "empty"
	case len(path) > longestPath:
		return fmt.Sprintf("%d bytes long", len(path))
	case !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }):
		return "has a control character, or is not UTF-8"
	case path != "." && slices.Contains(splitPath(path), ""):
		return "has an empty part"
	}
	return ""
}

// Join joins paths, each once, in order.
func Join(a, b []string) []string {
	for _, path := range b {
		if !slices.Contains(a, path) {
			a = append(a[:len(a):len(a)], path)
		}
	}
	return a
}

// Mask returns a payload with *** in the place of each secret value. Its shape stays. A payload that is not JSON is secret as a
// whole if any path is. Without a path it is returned as it is.
func Mask(payload []byte, secret []string) []byte {
	if len(secret) == 0 || len(payload) == 0 {
		return payload
	}
	return maskBelow(payload, pathsOf(secret))
}

// MaskAt is [Mask] for the part of a payload that lies below a place: the fields around it, from the outside in.
func MaskAt(part []byte, place []string, secret []string) []byte {
	left := pathsOf(secret)
	for _, name := range place {
		left = below(left, name)
	}
	if len(left) == 0 || len(part) == 0 {
		return part
	}
	return maskBelow(part, left)
}

// Values returns the values that [Mask] hides, as text, each once.
func Values(payload []byte, secret []string) []string {
	if len(secret) == 0 || len(payload) == 0 {
		return nil
	}
	if !json.Valid(payload) {
		return []string{string(payload)}
	}
	var list []string
	w := walk{in: decoder(payload), hide: func(v any) { list = append(list, fmt.Sprint(v)) }}
	w.value(pathsOf(secret))
	slices.Sort(list)
	return slices.Compact(list)
}

func maskBelow(payload []byte, left [][]string) []byte {
	if !json.Valid(payload) {
		return strconv.AppendQuote(nil, Masked)
	}
	w := walk{in: decoder(payload), hide: func(any) {}}
	w.value(left)
	return w.out.Bytes()
}

func decoder(payload []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // a number is shown as it was written
	return d
}

// walk writes a JSON value again, without what is secret.
type walk struct {
	in   *json.Decoder
	out  bytes.Buffer
	hide func(v any) // is called with each value that is left out
}

// value writes one value. Left are the paths that lead below it; a path of no parts says that the value is secret.
func (w *walk) value(left [][]string) {
	token, err := w.in.Token()
	if err != nil {
		return // cannot be: the value is valid
	}
	switch token {
	case json.Delim('{'):
		w.members(left, '}', func(int) string {
			name, _ := w.in.Token()
			text, _ := name.(string)
			w.scalar(text)
			w.out.WriteByte(':')
			return text
		})
	case json.Delim('['):
		w.members(left, ']', strconv.Itoa)
	default:
		if slices.ContainsFunc(left, func(path []string) bool { return len(path) == 0 }) {
			w.hide(token)
			token = Masked
		}
		w.scalar(token)
	}
}

func (w *walk) members(left [][]string, end byte, name func(i int) string) {
	w.out.WriteByte(end - 2) // { and }, [ and ] lie two apart
	for i := 0; w.in.More(); i++ {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.value(below(left, name(i)))
	}
	_, _ = w.in.Token()
	w.out.WriteByte(end)
}

func (w *walk) scalar(v any) {
	e := json.NewEncoder(&w.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded from JSON
	w.out.Truncate(w.out.Len() - 1)
}

// below returns what is left of the paths one field further in.
func below(left [][]string, name string) (list [][]string) {
	for _, path := range left {
		switch {
		case len(path) == 0:
			list = append(list, path) // all below a secret is secret
		case path[0] == "*" || strings.EqualFold(path[0], name):
			list = append(list, path[1:])
		}
	}
	return list
}

func pathsOf(secret []string) [][]string {
	list := make([][]string, len(secret))
	for i, path := range secret {
		if path != "." && path != "*" {
			list[i] = splitPath(path)
		}
	}
	return list
}

// splitPath cuts a path at its dots. A backslash takes the next character as it is.
func splitPath(path string) []string {
	parts := []string{""}
	escaped := false
	for _, r := range path {
		last := &parts[len(parts)-1]
		switch {
		case escaped:
			*last, escaped = *last+string(r), false
		case r == '\\':
			escaped = true
		case r == '.':
			parts = append(parts, "")
		default:
			*last += string(r)
		}
	}
	return parts
}
