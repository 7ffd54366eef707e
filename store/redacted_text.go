package store

import (
	"regexp"
	"strings"
)

const unsaid = "…"

// exampleURL is in the hint of a refused URL. No Redis has its password.
const exampleURL = "redis://user:password@127.0.0.1:6379/0"

var (
	ofRedis = regexp.MustCompile(`(?i)rediss?(-sentinel|-cluster)?:/+`) // a path has one slash where a URL has two
	ofOther = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s"'/@:]*(?::[^\s"']*)?)@`)
	isPort  = regexp.MustCompile(`^[^:]*:\d*/`)
)

// RedactedText returns text in which no URL shows a user or a password. It is for texts whose origin is not known: an error
// quotes what it refuses, and that may be a URL that was put in the wrong place, such as a namespace or a file.
func RedactedText(text string) string {
	starts := ofRedis.FindAllStringIndex(text, -1)
	var b strings.Builder
	at := 0
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		b.WriteString(withoutLogins(text[at:start[0]]))
		token := urlAt(text[start[0]:end])
		b.WriteString(redactedToken(token, text[start[0]:start[1]]))
		at = start[0] + len(token)
	}
	b.WriteString(withoutLogins(text[at:]))
	return b.String()
}

// urlAt is the URL that text begins with. A password may have spaces and quotes in it, so it goes on to the last @, or to
// where a long value was cut, unless something of the URL has been left out before.
func urlAt(text string) string {
	word := text[:endOfWord(text)]
	last, cut := strings.LastIndexByte(text, '@'), strings.Index(text, unsaid+`"`)
	switch {
	case strings.Contains(word, unsaid):
	case last >= len(word):
		word = text[:last+endOfWord(text[last:])]
	case last < 0 && cut > 0:
		word = text[:cut+len(unsaid)]
	}
	return strings.TrimRight(word, ":;,.)")
}

func endOfWord(text string) int {
	if i := strings.IndexAny(text, " \t\"'"); i >= 0 {
		return i
	}
	return len(text)
}

func redactedToken(token, scheme string) string {
	switch {
	case token == exampleURL, len(token) < len(scheme):
		return token
	case !strings.HasSuffix(scheme, "://") || strings.ToLower(scheme) != scheme:
		return scheme + unsaid
	}
	return Redacted(token)
}

// withoutLogins leaves out user and password of URLs of whatever scheme. Digits and a slash are a port, and no password.
func withoutLogins(text string) string {
	return ofOther.ReplaceAllStringFunc(text, func(match string) string {
		scheme, login, _ := strings.Cut(match, "://")
		if isPort.MatchString(login) {
			return match
		}
		return scheme + "://" + unsaid + "@"
	})
}
