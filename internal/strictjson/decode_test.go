package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Gap string `json:"gap,omitempty"`
}

type document struct {
	Name    string          `json:"name"`
	Level   string          `json:"level,omitempty" enum:"low,normal,high"`
	N       *int            `json:"n,omitempty"`
	At      time.Time       `json:"at,omitzero"`
	Inner   inner           `json:"inner,omitzero"`
	List    []inner         `json:"list,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Own     string          `json:"-"`
}

func TestDecode_namesEachFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"name":"x","payload":{"a":null,"A":1}}`: "",
		`{"nam":"x","level":3}`:                   `nam: unknown field (did you mean name?); level: must be text (low, normal or high), but is a number`,
		`{"n":1.5}`:                               `n: must be a whole number, but is 1.5`,
		`{"at":"soon"}`:                           `at "soon": not a time (RFC 3339, such as 2030-01-31T09:00:00Z)`,
		`{"inner":{"gap":1,"gop":2}}`:             `inner.gap: must be text, but is a number; inner.gop: unknown field (did you mean gap?)`,
		`{"inner":[]}`:                            `inner: must be a mapping, but is an array`,
		`{"name":"x","Name":"y"}`:                 `Name: appears twice (write each key once: one of the two values would be lost)`,
		`[]`:                                      `an array, not a document`,
		` null `:                                  `null, not a document`,
		`{"":1}`:                                  `"": unknown field (known: name, level, n, at, inner, list, payload)`,
		`{"-":"x"}`:                               `-: unknown field (known: name, level, n, at, inner, list, payload)`,
		`{`:                                       `not JSON: it ends too early`,
		``:                                        `not JSON: it ends too early`,
		`{} {}`:                                   `more than one JSON value`,
		`{]`:                                      `not JSON: invalid character ']' looking for beginning of object key string`,
	} {
		var got string
		if err := Decode([]byte(in), &document{}, "document"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	var bad *Malformed
	if err := Decode([]byte(`{} 1`), &document{}, ""); !errors.As(err, &bad) || !bad.More {
		t.Errorf("%v", err)
	}
}

func TestExact_refusesOtherLettersAndNull(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"name":"x","inner":{"gap":"y"},"list":[{"gap":""}],"payload":{"Name":null}}`: "",
		`{"name":"x","payload":null}`:               "",
		`{"Name":"x"}`:                              `Name: unknown field (did you mean name?)`,
		`{"name":null}`:                             `name: must be text, but is null (leave it out)`,
		`{"n":null,"inner":null}`:                   `n: must be a whole number, but is null (leave it out); inner: must be a mapping, but is null (leave it out)`,
		`{"list":[{},{"GAP":[[1]],"gap":""},null]}`: `list[1].GAP: unknown field (did you mean gap?); list[2]: must be a mapping, but is null (leave it out)`,
		`{"at":null}`:                               `at: must be text, but is null (leave it out)`,
	} {
		var got string
		if err := Exact([]byte(in), reflect.TypeFor[document]()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// A document that is one long key, or one long number, is refused in few words.
func TestDecode_showsNotAllOfAVeryLongKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 100_000)
	for _, in := range []string{`{"` + long + `":1}`, `{"inner":{"` + long + `":1}}`, `{"n":` + long + `}`, `{"payload":{"` + long + `":1,"` + long + `":2}}`} {
		err := Decode([]byte(in), &document{}, "document")
		if err == nil || len(err.Error()) > 600 {
			t.Errorf("%.40s: %.400v", in, err)
		}
	}
}

// A document that Decode and Exact accept has the same value in each field after it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"x","level":"low","n":3,"at":"2030-01-31T09:00:00Z","inner":{"gap":"y"},"list":[{"gap":"z"}],"payload":[1]}`))
	f.Add([]byte(`{"name":"x","Name":"y"}`))
	f.Add([]byte("{\"name\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d, again document
		if Decode(data, &d, "document") != nil || Exact(data, reflect.TypeFor[document]()) != nil {
			return
		}
		text, err := json.Marshal(d)
		if err != nil {
			return // a payload that is not JSON alone, or a year that JSON has not
		}
		if err := Decode(text, &again, "document"); err != nil || again.Name != d.Name || !again.At.Equal(d.At) || again.Inner != d.Inner {
			t.Errorf("%q becomes %s: %v", data, text, err)
		}
	})
}

// An object of thousands of wrong fields is refused in few words.
func TestDecode_namesNotEachOfVeryManyFields(t *testing.T) {
	t.Parallel()
	var unknown, nulls []byte
	for i := range 5000 {
		unknown = fmt.Appendf(unknown, `,"x%d":1`, i)
		nulls = append(nulls, `,null`...)
	}
	for _, err := range []error{
		Decode([]byte(`{`+string(unknown[1:])+`}`), &document{}, "document"),
		Exact([]byte(`{"list":[`+string(nulls[1:])+`]}`), reflect.TypeFor[document]()),
	} {
		many, _ := err.(interface{ Unwrap() []error })
		if many == nil || len(many.Unwrap()) != mostRefused {
			t.Errorf("%.200v", err)
		}
	}
}
