package secret

import (
	"slices"
	"strings"
)

// How much of a secret is hidden where a text has no more of it.
const (
	brokenOff = 4 // at the end of the text, which may have been cut there
	startOf   = 8 // anywhere
)

// mark is a secret that begins at a byte: what is shown in its place, and where it ends, or 0.
type mark struct {
	shown string
	end   int
}

// hidden returns the first limit bytes of a text with what is shown in the place of secrets. Back says that the text runs backwards.
func (s *Set) hidden(text string, limit int, back bool) string {
	forms := s.ready()
	marks := make([]mark, len(text))
	for _, v := range views(text, back) {
		for _, f := range forms {
			if back {
				f.text = backwards(f.text)
				f.shown = backwards(f.shown)
			}
			f.find(v, marks)
		}
	}
	var b strings.Builder
	for i, end := 0, 0; i < limit; i++ {
		switch {
		case marks[i].end > 0 && i >= end:
			b.WriteString(marks[i].shown)
		case i >= end:
			b.WriteByte(text[i])
		}
		end = max(end, marks[i].end)
	}
	return b.String()
}

// find marks where a form, or the start of it, begins.
func (f form) find(v view, marks []mark) {
	if !f.mayBeIn(v.text) {
		return
	}
	for i, n := range common(f.text + v.text)[len(f.text):] {
		n = min(n, len(f.text))
		if n == len(f.text) || n >= startOf || n >= brokenOff && i+n == len(v.text) {
			if at, end := v.at[i], v.at[i+n]; end > max(at, marks[at].end) {
				marks[at] = mark{f.shown, end}
			}
		}
	}
}

// mayBeIn is a quick look: most texts have nothing of a secret in them.
func (f form) mayBeIn(text string) bool {
	start := f.text[:min(len(f.text), startOf)]
	if strings.Contains(text, start) {
		return true
	}
	for n := brokenOff; n < len(start); n++ {
		if strings.HasSuffix(text, start[:n]) {
			return true
		}
	}
	return false
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

func backwards(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}
