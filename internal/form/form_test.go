package form_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/form"
)

type thing struct {
	Text  string
	N     int
	Large int64
	Time  time.Time
	Raw   json.RawMessage
	List  []string
}

func (x *thing) fields() []form.Field {
	return []form.Field{{"text", &x.Text}, {"n", &x.N}, {"large", &x.Large}, {"time", &x.Time}, {"raw", &x.Raw}, {"list", &x.List}}
}

// plain is the same for encoding/json.
type plain struct {
	Text  string          `json:"text,omitempty"`
	N     int             `json:"n,omitempty"`
	Large int64           `json:"large,omitempty"`
	Time  time.Time       `json:"time,omitzero"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	List  []string        `json:"list,omitempty"`
}

// The package reads and writes all that encoding/json does, and in the same way.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "text" : "a" , "n":-5,"large":9007199254740993 , "raw":{"a":[1,{"b":"}]\"\\"}]},"list":["x","y"],"new":1.5e3,"names":{"a":"b"}}`,
		`{"text":"a\u2028\"<&>é","time":"2030-01-31T09:00:00+09:00","raw":"\\","more":[[]],"none":null,"t":true}`, `{"te\u0078t":"x"}`, `{"text":null,"raw":null}`,
		`{"text":1}`, `{"time":"soon"}`, `[]`, `null`, ``, `{"a"`, `{"n":1,"n":2}`, "{\"text\":\"\xff\"}", `{"list":[],"names":{}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got thing
		var rest map[string]json.RawMessage
		err := form.Unmarshal([]byte(text), got.fields(), &rest)
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &all) != nil {
			if err == nil {
				t.Fatalf("%q was read", text)
			}
			return
		}
		var want plain
		for name := range all { // encoding/json takes Text for text
			if !isField(name) {
				if err == nil && string(rest[name]) == "" {
					t.Fatalf("%q: the rest %v lacks %q", text, rest, name)
				}
				delete(all, name)
			}
		}
		exact, _ := json.Marshal(all)
		if wrong := json.Unmarshal(exact, &want); (wrong == nil) != (err == nil) {
			t.Fatalf("%q: %v, not %v", text, err, wrong)
		}
		if err != nil {
			return
		}
		want.Time, got.Time = want.Time.UTC(), got.Time.UTC()
		a, err1 := form.Marshal(got.fields())
		b, err2 := json.Marshal(want)
		if (err1 == nil) != (err2 == nil) || err1 == nil && string(a) != string(b) {
			t.Fatalf("%q is written as\n%s, %v, not\n%s, %v", text, a, err1, b, err2)
		}
	})
}

func isField(name string) bool {
	for i := range reflect.TypeFor[plain]().NumField() {
		if field := reflect.TypeFor[plain]().Field(i).Tag.Get("json"); field == name+",omitempty" || field == name+",omitzero" {
			return true
		}
	}
	return false
}

func TestJoin(t *testing.T) {
	t.Parallel()
	if got := string(form.Join([]byte(`{"a":1}`), []byte(`{}`), []byte(`{"b":2}`))); got != `{"a":1,"b":2}` {
		t.Error(got)
	}
}
