package secret

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leastPart is the length of the shortest part of a secret that is looked for alone: a shorter one may be any word. The login and
// the query of a URL are secret by themselves, so they may be as short as a value.
const leastPart = 6

// mostParts is the most parts of the secrets of one set that are looked for. Secrets of few parts come first: a long text with many
// words must not displace the token beside it.
const mostParts = 1000

// mostWords is how many words a value has that is no prose. A word of prose is no secret by itself if it has nothing but letters.
const mostWords = 10

// nested is how often a part is taken apart again: a query may have a URL in it, and base64 a login.
const nested = 3

// ordinary are parts that everybody knows, and that errors need.
var ordinary = []string{"bearer", "digest", "negotiate", "apikey", "api-key", "webhook", "webhooks", "service", "services"}

// parts lists the parts of all secrets, each with what is shown in place of its secret.
func (s *Set) parts() (list []value) {
	var each [][]value
	for _, v := range s.values {
		if len(v.text) < shortest {
			continue
		}
		var own []value
		for _, text := range partsOf(v.text) {
			own = append(own, value{text, v.shown})
		}
		each = append(each, own)
	}
	slices.SortStableFunc(each, func(a, b []value) int { return cmp.Compare(len(a), len(b)) })
	for _, own := range each {
		list = append(list, own[:min(len(own), mostParts-len(list))]...)
	}
	return list
}

// partsOf lists what a receiver may repeat of a secret, the longest first: the words of a header without the name of its scheme, what
// is in base64 there, the login in that, and the parts of a URL.
func partsOf(text string) []string {
	found := map[string]bool{}
	addParts(found, text, nested)
	delete(found, text)
	list := make([]string, 0, len(found))
	for part := range found {
		list = append(list, part)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return list
}

func addParts(found map[string]bool, text string, depth int) {
	if depth == 0 {
		return
	}
	addURL(found, text, depth)
	prose := len(strings.Fields(text)) > mostWords
	for _, ends := range []func(rune) bool{unicode.IsSpace, endsWord} {
		for word := range strings.FieldsFuncSeq(text, ends) {
			if !prose || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
				addWord(found, word, depth)
			}
		}
	}
}

// addWord adds a word, its end behind a colon (a password behind its user), and the text that it encodes in base64.
func addWord(found map[string]bool, word string, depth int) {
	addPart(found, word, leastPart)
	if _, behind, ok := strings.Cut(word, ":"); ok && !strings.HasPrefix(behind, "//") {
		addPart(found, behind, leastPart)
	}
	addURL(found, word, depth)
	if plain := decoded(word); len(plain) >= leastPart {
		addPart(found, plain, leastPart)
		addParts(found, plain, depth-1)
	}
}

// addURL adds the parts of a URL: it without its login, its host, and each part of its login, path and query.
func addURL(found map[string]bool, text string, depth int) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	password, _ := u.User.Password()
	for _, part := range []string{u.Redacted(), u.Host, u.Hostname(), u.EscapedPath(), u.RequestURI(), u.RawQuery, u.Fragment, u.User.Username(), password, u.User.Username() + ":" + password} {
		addPart(found, part, shortest)
	}
	before := ""
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		addWord(found, segment, depth)
		if before != "" && segment != "" && !isOrdinary(before) { // of a pair its start is hidden too
			addPart(found, before+"/"+segment, leastPart)
		}
		before = segment
	}
	for _, values := range u.Query() {
		for _, v := range values {
			addPart(found, v, shortest)
			addParts(found, v, depth-1)
		}
	}
	u.User = nil
	addPart(found, u.String(), shortest)
}

func addPart(found map[string]bool, part string, least int) {
	if len(part) >= least && !isOrdinary(part) {
		found[part] = true
	}
}

func isOrdinary(part string) bool { return slices.Contains(ordinary, strings.ToLower(part)) }

// endsWord reports whether a word ends at a character, in a list, a pair or a quotation.
func endsWord(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,;=&?#"'<>(){}[]`, r) }

// decoded returns the text that a word has in base64, or "".
func decoded(word string) string {
	word = strings.TrimRight(word, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		b, err := encoding.DecodeString(word)
		if err == nil && utf8.Valid(b) && !strings.ContainsFunc(string(b), unicode.IsControl) {
			return string(b)
		}
	}
	return ""
}
