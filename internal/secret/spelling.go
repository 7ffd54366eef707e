package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reading is a text in another spelling. Each byte of it comes from the place in the original that at says; the last of at is the
// end of the original.
type reading struct {
	text string
	at   []int
}

// deepest is how often escapes are undone: an error quotes a reply, which is JSON, and the secret may have had escapes before.
const deepest = 4

// readings lists a text as it is, and with its escapes undone once and more often, all folded.
func readings(text string) (list []reading) {
	r := reading{text, make([]int, len(text)+1)}
	for i := range r.at {
		r.at[i] = i
	}
	for {
		list = append(list, r.rewritten(folded))
		plain := r.rewritten(unescaped)
		if plain.text == r.text || len(list) > deepest {
			return list
		}
		r = plain
	}
}

// rewritten is a reading with parts of it replaced. Read returns what stands for the first n bytes of a text; n is 0 if they stay.
func (r reading) rewritten(read func(rest string) (plain string, n int)) reading {
	var b strings.Builder
	at := make([]int, 0, len(r.at))
	for i := 0; i < len(r.text); {
		plain, n := read(r.text[i:])
		if n == 0 {
			plain, n = r.text[i:i+1], 1
		}
		b.WriteString(plain)
		for range len(plain) {
			at = append(at, r.at[i])
		}
		i += n
	}
	return reading{b.String(), append(at, r.at[len(r.text)])}
}

// folded reads a character in one case, and a run of white space as a blank.
func folded(rest string) (string, int) {
	r, n := utf8.DecodeRuneInString(rest)
	switch {
	case r == utf8.RuneError && n == 1:
		return "", 0
	case unicode.IsSpace(r):
		return " ", len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	}
	return string(unicode.ToLower(unicode.ToUpper(r))), n
}

// unescaped reads an escape of JSON, Go, a URL or HTML.
func unescaped(rest string) (plain string, n int) {
	switch rest[0] {
	case '+':
		return " ", 1
	case '%':
		if b, err := hex.DecodeString(rest[1:min(len(rest), 3)]); err == nil && len(b) == 1 {
			return string(b), 3
		}
	case '&':
		n := strings.IndexByte(rest[:min(len(rest), 12)], ';') + 1
		if plain := entity(rest[:n]); plain != "" {
			return plain, n
		}
	case '\\':
		return backslash(rest)
	}
	return "", 0
}

// entities are those of HTML and XML for what they escape.
var entities = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&apos;": "'"}

func entity(text string) string {
	number, ok := strings.CutPrefix(strings.TrimSuffix(strings.ToLower(text), ";"), "&#")
	if !ok {
		return entities[text]
	}
	number = strings.TrimLeft(number, "0")
	if strings.HasPrefix(number, "x") {
		number = "0" + number
	}
	r, err := strconv.ParseUint(number, 0, 21)
	if err != nil {
		return ""
	}
	return string(rune(r))
}

func backslash(rest string) (string, int) {
	const pair = len(`\ud83d\ude00`)
	if len(rest) > 1 && strings.IndexByte(`/"'`, rest[1]) >= 0 {
		return rest[1:2], 2
	}
	if len(rest) >= pair && rest[1] == 'u' {
		var s string
		if json.Unmarshal([]byte(`"`+rest[:pair]+`"`), &s) == nil && utf8.RuneCountInString(s) == 1 {
			return s, pair
		}
	}
	r, wide, tail, err := strconv.UnquoteChar(rest, 0)
	switch {
	case err != nil:
		return "", 0
	case !wide:
		return string([]byte{byte(r)}), len(rest) - len(tail)
	}
	return string(r), len(rest) - len(tail)
}

// form is a folded spelling of a secret, and the text that is shown in its place.
type form struct{ text, shown string }

// spellings makes the forms once.
func (s *Set) spellings() []form {
	s.once.Do(func() {
		for _, v := range s.values {
			s.forms = append(s.forms, v.forms()...)
		}
		for _, part := range s.parts() {
			s.forms = append(s.forms, part.forms()...)
		}
		slices.SortFunc(s.forms, func(a, b form) int { return strings.Compare(a.text+a.shown, b.text+b.shown) })
		s.forms = slices.Compact(s.forms)
	})
	return s.forms
}

// forms lists the spellings of a value that are not the work of an escape, which [readings] undoes.
func (v value) forms() (list []form) {
	add := func(text string, least int) {
		for _, r := range readings(text) {
			if folded := strings.Trim(r.text, " "); len(folded) >= least {
				list = append(list, form{folded, v.shown})
			}
		}
	}
	if v.shown != Masked {
		add(v.text, 1)
	}
	if len(v.text) < shortest {
		return list
	}
	add(v.text, shortest)
	add(hex.EncodeToString([]byte(v.text)), shortest)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		add(encoding.EncodeToString([]byte(v.text)), shortest)
		for before := range 3 {
			add(within(encoding, v.text, before), shortest)
		}
	}
	return list
}

// within returns the characters that a text has in base64 of a longer text, behind so many bytes more than three times any number.
func within(encoding *base64.Encoding, text string, before int) string {
	const least = 4
	whole := encoding.EncodeToString([]byte("\x00\x00"[:before] + text))
	from := (before*8 + 5) / 6
	if to := (before + len(text)) * 8 / 6; to-from >= least {
		return whole[from:to]
	}
	return ""
}
