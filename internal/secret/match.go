package secret

import (
	"slices"
	"strings"
)

// How much of a secret is hidden where a text has no more of it.
const (
	brokenOff = 4 // at an end of the text, which may have been cut there, with an ellipsis behind it or not
	startOf   = 8 // anywhere
)

// mark is a secret that begins at a byte: the text that is shown in its place, and its end, or 0.
type mark struct {
	shown string
	end   int
}

// hidden returns the first limit bytes of a text with what is shown in the place of secrets, and of their ends if ends is true.
func (s *Set) hidden(text string, limit int, ends bool) string {
	marks := make([]mark, len(text))
	for _, r := range readings(text) {
		for _, f := range s.spellings() {
			f.find(r, marks, ends)
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

// find marks where a form begins, or the start of it, or the end of it.
func (f form) find(r reading, marks []mark, ends bool) {
	set := func(from, to int) {
		if at, end := r.at[from], r.at[to]; end > max(at, marks[at].end) {
			marks[at] = mark{f.shown, end}
		}
	}
	whole, size := len(f.text), len(strings.TrimSuffix(r.text, "…"))
	if strings.Contains(r.text, f.text[:min(whole, brokenOff)]) { // most texts have nothing of a secret in them
		for i, n := range common(f.text, r.text) {
			if n == whole || n >= startOf || n >= brokenOff && i+n == size {
				set(i, i+n)
			}
		}
	}
	if ends && strings.Contains(r.text, f.text[max(whole-brokenOff, 0):]) {
		for i, n := range common(backwards(f.text), backwards(r.text)) {
			if n >= startOf || n >= brokenOff && i+n == len(r.text) {
				set(len(r.text)-i-n, len(r.text)-i)
			}
		}
	}
}

// common returns, for each byte of a text, how many bytes from there are those that form begins with (the Z function, in linear time).
func common(form, text string) []int {
	s := form + text
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
	for i := range z {
		z[i] = min(z[i], len(form))
	}
	return z[len(form):]
}

// backwards returns the bytes of a text in reverse.
func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
