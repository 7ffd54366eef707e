package strictjson_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/strictjson"
)

func TestList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, values, rest string }{
		{`{"a":1,"x":[1, {"x":[2]} ,"]"],"b":{"x":[]}}`, `1|{"x":[2]}|"]"`, `{"a":1,"x":[],"b":{"x":[]}}`},
		{` { "x" : [ ] } `, ``, ` { "x" : [] } `},
		{`{"\u0078":[1,2,3,4,5]}`, `1|2|3|4`, `{"\u0078":[]}`}, // one more than most
		{`{"x":[1],"x":[2]}`, `1`, `{"x":[],"x":[2]}`},
		{`{"x":7}`, ``, `{"x":7}`}, {`{"y":{"x":[1]}}`, ``, ``}, {`[{"x":[1]}]`, ``, ``}, {`null`, ``, ``}, {`{}`, ``, ``},
	} {
		values, rest := strictjson.List([]byte(c.data), "x", 3)
		if got := fmt.Sprintf("%s", slices.Collect(texts(values))); got != fmt.Sprint(strings.FieldsFunc(c.values, func(r rune) bool { return r == '|' })) || string(rest) != c.rest {
			t.Errorf("%s: %s, %s", c.data, got, rest)
		}
	}
}

func texts(values [][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range values {
			if !yield(string(v)) {
				return
			}
		}
	}
}

// An object of many short keys takes a few times its own size.
func TestCheck_takesLittleMemory(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"0":1`)
	for i := 1; b.Len() < 4<<20; i++ {
		fmt.Fprintf(&b, `,"%x":1`, i)
	}
	data := []byte(b.String() + "}")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := strictjson.Check(data, "", nil)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(8*len(data)) {
		t.Errorf("%v; %d bytes took %d", err, len(data), took)
	}
}
