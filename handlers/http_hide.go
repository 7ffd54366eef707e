package handlers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of a secret is hidden where a text has no more of it.
const (
	brokenOff = 4 // at the end of the text, which may have been cut there
	startOf   = 8 // anywhere
)

// hide is the first limit bytes of a text with references in the place of secrets. A receiver may repeat what it was sent, in other
// case, with other white space, or only its start. Of a secret that begins within the limit nothing is shown, so the text has
// to go on behind it for the longest of them. It takes time by the length of the text and of the secrets.
func hide(text string, secrets []secret, limit int) string {
	limit = min(limit, len(text))
	if len(secrets) == 0 {
		return text[:limit]
	}
	folded, from := fold(text)
	names, ends := hits(folded, secrets)
	var b strings.Builder
	for i, end := 0, 0; i < len(folded) && from[i] < limit; i++ {
		switch {
		case ends[i] > 0 && i >= end:
			b.WriteString(names[i])
		case i >= end:
			b.WriteString(text[from[i]:min(from[i+1], limit)])
		}
		end = max(end, ends[i])
	}
	return b.String()
}

// hits finds the secrets that begin at each byte of a folded text: what is shown for the longest, and where it ends, or 0.
func hits(text string, secrets []secret) (names []string, ends []int) {
	names, ends = make([]string, len(text)), make([]int, len(text))
	for _, s := range secrets {
		value, _ := fold(strings.TrimSpace(s.value))
		if value == "" {
			continue
		}
		for i, n := range common(value + text)[len(value):] {
			n = min(n, len(value))
			if (n == len(value) || n >= startOf || n >= brokenOff && i+n == len(text)) && i+n > ends[i] {
				names[i], ends[i] = s.shown(), i+n
			}
		}
	}
	return names, ends
}

// common is, for each byte of s, how much of what begins there s begins with too (the Z function, in linear time).
func common(s string) []int {
	z := make([]int, len(s))
	for i, l, r := 1, 0, 0; i < len(s); i++ {
		if i < r {
			z[i] = min(r-i, z[i-l])
		}
		for i+z[i] < len(s) && s[z[i]] == s[i+z[i]] {
			z[i]++
		}
		if i+z[i] > r {
			l, r = i, i+z[i]
		}
	}
	return z
}

// fold is a text in one case, with one blank for each run of white space. Each byte of it comes from the place in the text that
// from says; the last of from is the end of the text.
func fold(text string) (folded string, from []int) {
	b := make([]byte, 0, len(text))
	from = make([]int, 0, len(text)+1)
	for i, width := 0, 0; i < len(text); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			b = append(b, text[i])
		case !unicode.IsSpace(r):
			b = utf8.AppendRune(b, unicode.ToLower(unicode.ToUpper(r)))
		default:
			for j := i + width; j < len(text); j += utf8.RuneLen(r) {
				if r, _ = utf8.DecodeRuneInString(text[j:]); !unicode.IsSpace(r) {
					break
				}
				width += utf8.RuneLen(r)
			}
			b = append(b, ' ')
		}
		for len(from) < len(b) {
			from = append(from, i)
		}
	}
	return string(b), append(from, len(text))
}

// withheld stands for an answer that may repeat a secret in a spelling that hide does not know.
const withheld = "(not shown: it has escapes, and may repeat a secret)"

// hideAnswer is hide for what a receiver answered. JSON may spell each character in more ways than one, so an answer that has
// other escapes is not shown at all.
func hideAnswer(text string, secrets []secret, limit int) string {
	shown := hide(text, secrets, limit)
	if len(secrets) > 0 && strings.Contains(shown, `\`) {
		return withheld
	}
	return shown
}
