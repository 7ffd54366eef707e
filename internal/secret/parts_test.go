package secret

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A receiver repeats a part of a secret in its answer.
func TestSet_findsWhatAReceiverRepeatsOfASecret(t *testing.T) {
	t.Parallel()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:hunter2!"))
	for _, x := range []struct{ secret, answer, hidden string }{
		{"Bearer tok-8f3a9c", "401 invalid token tok-8f3a9c", "tok-8f3a9c"},
		{"Bearer tok-8f3a9c", "no token dG9rLThmM2E5Yw==", "dG9r"},
		{"bearer\ttok-8f3a9c", `{"error":"tok-8f3a9c?"}`, "8f3a9c"},
		{"Token token=tok-8f3a9c, x=1", "unknown token tok-8f3a9c", "8f3a9c"},
		{`Digest username="ann", response="6629fae49393"`, "response 6629fae49393 is wrong", "6629fae"},
		{"sid=8f3a9cde; theme=dark", "no session 8f3a9cde", "8f3a9c"},
		{basic, "login failed for ann:hunter2!", "hunter2"},
		{basic, "the password hunter2! is wrong", "hunter2"},
		{strings.TrimPrefix(basic, "Basic "), "login failed for ann:hunter2!", "hunter2"},
		{base64.RawURLEncoding.EncodeToString([]byte(`{"username":"ann","password":"hunter2!"}`)), "hunter2! is wrong", "hunter2"},
		{"ann:hunter2!", "the password hunter2! is wrong", "hunter2"},
		{"https://h.example/seg/T024/XyZsecretHook99", "no webhook XyZsecretHook99", "XyZ"},
		{"https://h.example/seg/T024/XyZsecretHook99", "404 t024/xyzsecrethook99", "t024"},
		{"https://h.example/seg/T024/B031", "no channel T024/B031", "T024"},
		{"https://h.example/bot4711:AbC-dEf/send", "unknown bot AbC-dEf", "AbC"},
		{"https://h.example/a%20b%2Fc%20d/x", "no a b/c d", "a b"},
		{"https://h.example/?u=https://i.example/q/Hook4711", "no Hook4711", "4711"},
		{"https://ann:pw4@h.example/", "ann:pw4", "pw4"},
		{"post to https://h.example/XyZsecretHook99 now", "no XyZsecretHook99", "XyZ"},
	} {
		var s Set
		s.Add(x.secret)
		if got := s.Hide("before: " + x.answer + " (behind)"); strings.Contains(got, x.hidden) || !strings.Contains(got, Masked) || !strings.HasPrefix(got, "before: ") || !strings.HasSuffix(got, " (behind)") {
			t.Errorf("%s: %s", x.secret, got)
		}
	}
	if got := named(map[string]string{"AUTH": "Bearer tok-8f3a9c"}).Hide("no token tok-8f3a9c"); got != "no token ${AUTH}" {
		t.Error(got)
	}
}

// A text that was cut in the middle of a secret has an ellipsis behind it.
func TestSet_findsWhatIsBeforeAnEllipsis(t *testing.T) {
	t.Parallel()
	var s Set
	s.Add("Bearer tok-8f3a9c")
	if got := s.Hide("no token tok-8…"); got != "no token ***…" {
		t.Error(got)
	}
}

func TestSet_leavesOrdinaryWords(t *testing.T) {
	t.Parallel()
	for secret, texts := range map[string][]string{
		"Bearer tok-8f3a9c": {"401: Bearer realm=x", "a Bearer header is needed"},
		"Digest response=6629fae49393, algorithm=MD5, realm=shop":                {"Digest of the shop, by MD5"},
		"https://h.example/api/v1/webhooks/services/T0/XyZsecretHook99":          {"api v1: no such webhook", "webhooks and services are off", "T0"},
		"Dear Ann, the order that we had from you last month was shipped by Tom": {"the order was not found", "shipped last month"},
	} {
		var s Set
		s.Add(secret)
		for _, text := range texts {
			if got := s.Hide(text); got != text {
				t.Errorf("%s: %q becomes %q", secret, text, got)
			}
		}
	}
}

// A long text beside a token does not take its place, and the parts that are looked for have an end.
func TestSet_findsATokenBesideALongText(t *testing.T) {
	t.Parallel()
	var s Set
	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "https://h.example/a-long-word-%d/another-%d ", i, i)
	}
	s.Add(long.String(), "Bearer tok-8f3a9c")
	if got := s.Hide("x no token tok-8f3a9c."); got != "x no token ***." {
		t.Error(got)
	}
	if n := len(s.parts()); n != mostParts {
		t.Errorf("looks for %d parts, want %d", n, mostParts)
	}
}

func BenchmarkSet(b *testing.B) {
	text := strings.Repeat("an answer of a service that says what went wrong, in words. ", 64<<10/60)
	for name, secret := range map[string]string{"header": "Bearer tok-8f3a9c0123456789", "url": "https://ann:pw@hooks.example/services/T024/B031/XyZsecretHook99?key=hush"} {
		for _, n := range []int{1 << 10, 64 << 10} {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				for b.Loop() {
					var s Set
					s.Add(secret)
					s.Hide(text[:min(n, len(text))])
				}
			})
		}
	}
}
