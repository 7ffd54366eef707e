package secret

import (
	"regexp"
	"strings"
)

// ExampleURL is in the hint of a refused URL. No Redis has its password.
const ExampleURL = "redis://user:password@127.0.0.1:6379/0"

var (
	ofRedis = regexp.MustCompile(`(?i)rediss?(-sentinel|-cluster)?:/+`) // a path has one slash where a URL has two
	ofOther = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s"'/@:]*(?::[^\s"']*)?)@`)
	isPort  = regexp.MustCompile(`^[^:]*:\d*/`)
)

// ofAny finds where a user and a password may begin: behind the slashes of a URL, or where a word and a colon stand together.
var ofAny = regexp.MustCompile(`(?:file:)?(?:[A-Za-z][A-Za-z0-9+.-]*:)?//|(?:^|[\s=,("'])[^\s=:@/"'\\{}\[\]]+:\S|^:\S`)

// Text returns text in which no URL shows a user or a password. It is for texts whose origin is not known: an error
// quotes what it refuses, and that may be a URL that was put in the wrong place, such as a namespace or a file.
func Text(text string) string {
	var b strings.Builder
	for {
		start, end := quotedIn(text)
		if redis := ofRedis.FindStringIndex(text); start < 0 || redis != nil && redis[0] < start {
			return b.String() + redactedPlain(text) // the password of a URL without quotes may have quotes in it
		}
		b.WriteString(redactedPlain(text[:start]) + `"` + Value(text[start+1:end-1]) + `"`)
		text = text[end:]
	}
}

// Value is [Text] for a text that is one value, which may end in the ellipsis of a cut. From the place where a
// user and a password may begin it hides all up to the last @, because a password may have any character in it.
func Value(value string) string {
	redis := ofRedis.FindStringIndex(value)
	before := value
	if redis != nil {
		before = value[:redis[0]]
	}
	loc := ofAny.FindStringIndex(before)
	switch {
	case loc == nil && redis == nil:
		return value
	case loc == nil:
		return strings.TrimSuffix(redactedPlain(value+`"`), `"`)
	}
	from := loc[1]
	if !strings.HasSuffix(value[:from], "//") {
		from = loc[0]
		if i := strings.IndexAny(value[from:from+1], " \t=,(\"'"); i >= 0 {
			from++
		}
	}
	last := strings.LastIndexByte(value, '@')
	switch {
	case strings.HasSuffix(value, unsaid):
		return value[:from] + unsaid
	case last >= from:
		return value[:from] + unsaid + value[last:]
	case redis != nil:
		return strings.TrimSuffix(redactedPlain(value+`"`), `"`)
	}
	return value
}

// quotedIn finds the first text in Go's quotes: where it begins and ends, or -1. Quotes within a word are not such.
func quotedIn(text string) (start, end int) {
	for start = 0; start < len(text); start++ {
		if text[start] != '"' || start > 0 && !strings.ContainsRune(" ([{=,:", rune(text[start-1])) {
			continue
		}
		for end = start + 1; end < len(text) && text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		if end >= len(text) {
			return -1, -1
		}
		if end++; end == len(text) || strings.ContainsRune(" :,;.)]}", rune(text[end])) {
			return start, end
		}
	}
	return -1, -1
}

// redactedPlain is [Text] for a text of which no part is known to be one value.
func redactedPlain(text string) string {
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
	case token == ExampleURL, len(token) < len(scheme):
		return token
	case !strings.HasSuffix(scheme, "://") || strings.ToLower(scheme) != scheme:
		return scheme + unsaid
	}
	return URL(token)
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
