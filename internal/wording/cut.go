package wording

import "unicode/utf8"

// Cut shortens s to at most limit bytes and an ellipsis, and cuts no character in two.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
