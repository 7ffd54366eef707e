package secret

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// view is a text in another spelling. Each byte of it comes from the place in the original that at says; the last of at is the end
// of the original.
type view struct {
	text string
	at   []int
}

// original is a text as it is.
func original(text string) view {
	at := make([]int, len(text)+1)
	for i := range at {
		at[i] = i
	}
	return view{text, at}
}

// deepest is how many escapes lie within each other: an error quotes a reply, which is JSON.
const deepest = 2

// views lists the readings of a text, folded: as it is, and with each kind of escape undone, and with the escapes within those.
// Of a text that runs backwards they are found forwards.
func views(text string, back bool) []view {
	if back {
		text = backwards(text)
	}
	list, seen := []view{original(text)}, map[string]bool{text: true}
	for from, depth := 0, 0; depth < deepest; depth++ {
		to := len(list)
		for _, v := range list[from:to] {
			for _, e := range escapes {
				if !strings.ContainsAny(v.text, e.mark) {
					continue
				}
				if plain := v.rewritten(e.read); !seen[plain.text] {
					seen[plain.text] = true
					list = append(list, plain)
				}
			}
		}
		from = to
	}
	for i := range list {
		list[i] = folded(list[i])
		if back {
			list[i] = reversed(list[i])
		}
	}
	return list
}

// reversed is a view of the original read backwards.
func reversed(v view) view {
	whole := v.at[len(v.at)-1]
	r := view{backwards(v.text), make([]int, 0, len(v.at))}
	if len(r.text) != len(v.text) { // not UTF-8, which who asks has seen to
		return view{"", []int{whole}}
	}
	for end := len(v.text); end > 0; {
		_, width := utf8.DecodeLastRuneInString(v.text[:end])
		for range width {
			r.at = append(r.at, whole-v.at[end])
		}
		end -= width
	}
	r.at = append(r.at, whole-v.at[0])
	return r
}

// rewritten is a view with parts of it replaced. Read returns what stands for the first n bytes of a text; n is 0 if they stay.
func (v view) rewritten(read func(rest string) (plain string, n int)) view {
	var b strings.Builder
	at := make([]int, 0, len(v.at))
	for i := 0; i < len(v.text); {
		plain, n := read(v.text[i:])
		if n == 0 {
			plain, n = v.text[i:i+1], 1
		}
		b.WriteString(plain)
		for range len(plain) {
			at = append(at, v.at[i])
		}
		i += n
	}
	return view{b.String(), append(at, v.at[len(v.text)])}
}

// folded is a view in one case, with one blank for each run of white space.
func folded(v view) view {
	return v.rewritten(func(rest string) (string, int) {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			return "", 0
		case !unicode.IsSpace(r):
			return string(unicode.ToLower(unicode.ToUpper(r))), n
		}
		return " ", len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	})
}

// escapes are the kinds of escapes: a character that each of them has, and how one is read.
var escapes = []struct {
	mark string
	read func(rest string) (plain string, n int)
}{
	{`\`, backslash},
	{"%", percent},
	{"%+", func(rest string) (string, int) { // of a query
		if rest[0] == '+' {
			return " ", 1
		}
		return percent(rest)
	}},
	{"&", entity},
}

// backslash reads an escape of JSON or Go.
func backslash(rest string) (string, int) {
	if len(rest) < 2 || rest[0] != '\\' {
		return "", 0
	}
	if rest[1] == '/' || rest[1] == '"' || rest[1] == '\'' {
		return rest[1:2], 2
	}
	if rest[1] == 'u' && len(rest) >= 12 && rest[6:8] == `\u` { // half a pair, perhaps
		high, err1 := strconv.ParseUint(rest[2:6], 16, 16)
		low, err2 := strconv.ParseUint(rest[8:12], 16, 16)
		if err1 == nil && err2 == nil && high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000 {
			return string(rune(0x10000 + (high-0xd800)<<10 + low - 0xdc00)), 12
		}
	}
	r, wide, tail, err := strconv.UnquoteChar(rest, 0)
	if err != nil {
		return "", 0
	}
	if !wide {
		return string([]byte{byte(r)}), len(rest) - len(tail)
	}
	return string(r), len(rest) - len(tail)
}

// percent reads an escape of a URL.
func percent(rest string) (string, int) {
	if len(rest) < 3 || rest[0] != '%' {
		return "", 0
	}
	b, err := strconv.ParseUint(rest[1:3], 16, 8)
	if err != nil {
		return "", 0
	}
	return string([]byte{byte(b)}), 3
}

// entities are the names that HTML and XML have for what they escape.
var entities = map[string]string{"amp": "&", "lt": "<", "gt": ">", "quot": `"`, "apos": "'"}

// entity reads an escape of HTML.
func entity(rest string) (string, int) {
	name, _, ok := strings.Cut(rest[1:min(len(rest), 12)], ";")
	if rest[0] != '&' || !ok {
		return "", 0
	}
	if plain, ok := entities[name]; ok {
		return plain, len(name) + 2
	}
	digits, base := strings.TrimPrefix(name, "#"), 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	if err != nil || digits == name {
		return "", 0
	}
	return string(rune(n)), len(name) + 2
}
