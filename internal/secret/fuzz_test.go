package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// spelt lists the ways in which an error may write a text.
func spelt(text string) []string {
	inJSON, _ := json.Marshal(text)
	html := strings.NewReplacer("&", "&amp;", "<", "&#60;", `"`, "&quot;").Replace(text)
	list := []string{
		text, string(inJSON), strconv.Quote(text), strconv.QuoteToASCII(text), url.QueryEscape(text), url.PathEscape(text), url.UserPassword("u", text).String(),
		(&url.URL{Path: text}).EscapedPath(), html, strings.ToUpper(text), hex.EncodeToString([]byte(text)),
	}
	for before := range 3 {
		padded := []byte("u:x"[:before] + text + "@h")
		list = append(list, base64.StdEncoding.EncodeToString(padded), base64.RawURLEncoding.EncodeToString(padded))
	}
	for _, one := range list[:9] {
		list = append(list, strconv.Quote(one), url.QueryEscape(one))
	}
	return list
}

// A secret in any spelling leaves nothing of it in a text, and the text around it stays.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"hunter2hunter2", "a b+c/d?e", "p%40ss\\w\"rd", "\u00e9\u00e9\u00e9\U0001f600", "https://u:p%40w@h.example/a b?c=d#e", "<&>;\n\t'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const known = "Zq7"
		if !utf8.ValidString(text) || strings.Trim(text, " \t\r\n") != text || len(text) > 1000 {
			return
		}
		text = known + text + known + "Zq8"
		var s Set
		s.Add(text)
		for i, one := range spelt(text) {
			got := s.Hide("before " + one + " behind")
			for _, plain := range readings(got) {
				if strings.Contains(plain.text, strings.ToLower(text)) || strings.Contains(plain.text, "zq7") {
					t.Errorf("%d: %q shows %q", i, got, text)
				}
			}
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") || !strings.Contains(got, Masked) {
				t.Errorf("%d: %q in %q becomes %q", i, text, one, got)
			}
		}
	})
}

func TestSet_findsThePartsOfAURL(t *testing.T) {
	t.Parallel()
	var s Set
	s.Add("https://ann:p%40ss@hooks.example/T0/a%20b?key=hush#part")
	for _, text := range []string{"https://hooks.example/T0/a%20b", "p@ss", "/T0/a b", "hush", "hooks.example", "GET /T0/a%20b?key=hush", "https://ann:xxxxx@hooks.example/T0"} {
		for _, part := range []string{"p@ss", "T0", "a b", "a%20b", "hush", "hooks"} {
			if got := s.Hide(`Post "` + text + `": refused`); strings.Contains(got, part) || !strings.HasSuffix(got, ": refused") {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
}
