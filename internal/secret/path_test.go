package secret

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestMask_hidesTheValuesAtItsPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, secret, want string }{
		{`{"card":{"number":"4111","cvv":123},"n":1.50}`, "card.number", `{"card":{"number":"***","cvv":123},"n":1.50}`},
		{`{"card":{"number":"4111","old":[1,null,true]}}`, "card", `{"card":{"number":"***","old":["***","***","***"]}}`},
		{`{"items":[{"token":"a","n":1},{"token":"b"}]}`, "items.*.token", `{"items":[{"token":"***","n":1},{"token":"***"}]}`},
		{`{"items":[{"token":"a"},{"token":"b"}]}`, "items.1.token", `{"items":[{"token":"a"},{"token":"***"}]}`},
		{`{"headers":{"authorization":"x"}}`, "headers.Authorization", `{"headers":{"authorization":"***"}}`},
		{`{"a":1,"a":2}`, "a", `{"a":"***","a":"***"}`},
		{`{"a.b":1,"a":{"b":2}}`, `a\.b`, `{"a.b":"***","a":{"b":2}}`},
		{`{"a":1,"b":[]}`, "*", `{"a":"***","b":[]}`},
		{`"text"`, "*", `"***"`},
		{`"text"`, ".", `"***"`},
		{`{"a":"<&>"}`, "b", `{"a":"<&>"}`},
		{`not JSON`, "a", `"***"`},
		{``, "a", ``},
	} {
		if got := string(Mask([]byte(c.payload), []string{c.secret})); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.payload, c.secret, got, c.want)
		}
	}
	if got := string(Mask([]byte(`not JSON`), nil)); got != "not JSON" {
		t.Errorf("nothing is secret: %s", got)
	}
	if got := string(MaskAt([]byte(`{"number":"4111"}`), []string{"card"}, []string{"card.number"})); got != `{"number":"***"}` {
		t.Errorf("a part: %s", got)
	}
}

func TestValues_areThoseThatAreHidden(t *testing.T) {
	t.Parallel()
	got := Values([]byte(`{"a":{"b":"x\ny","n":1.50},"c":"shown"}`), []string{"a"})
	if !slices.Equal(got, []string{"1.50", "x\ny"}) {
		t.Errorf("%q", got)
	}
}

func TestCheckPath_refusesWhatIsNoPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "a..b", ".a", "a.", "a\nb", "\xff", strings.Repeat("a", 300)} {
		if CheckPath(path) == "" {
			t.Errorf("%q was taken", path)
		}
	}
	for _, path := range []string{".", "*", "a", "a.*.b", `a\.b`, "0"} {
		if reason := CheckPath(path); reason != "" {
			t.Errorf("%q: %s", path, reason)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add(`{"a":{"b":"secret"},"c":[1,"x"]}`, "a.b")
	f.Add(`[[[]]]`, "*")
	f.Fuzz(func(t *testing.T, payload, path string) {
		got := Mask([]byte(payload), []string{path})
		switch {
		case payload == "":
		case !json.Valid([]byte(payload)) && string(got) != `"***"`:
			t.Errorf("%q is not JSON, and shown as %q", payload, got)
		case !json.Valid(got):
			t.Errorf("%q became %q", payload, got)
		}
		if all := Values(Mask([]byte(payload), []string{"*"}), []string{"*"}); len(all) > 1 || len(all) == 1 && all[0] != Masked {
			t.Errorf("%q shows %q", payload, all)
		}
	})
}
