package instance

import (
	"strings"
	"testing"
)

// The entry of an instance, as it lies in Redis, may be anything: reading it ends.
func FuzzMember(f *testing.F) {
	for _, s := range []string{"5 6 r 0 newest leader v1", "5 6 d 1 sticky all v 1 b", "", "x y z", "9e300 1 r 0 a b", " ", "5 6 r 0 newest"} {
		f.Add("id", s)
	}
	f.Add("k:foo", "5 1700000000000 by hand")
	f.Fuzz(func(t *testing.T, id, value string) {
		i := parseMember(id, value)
		if i.ID != id || i.State != "" && i.State != "starting" && i.State != "ready" && i.State != "draining" {
			t.Fatalf("%q: %+v", value, i)
		}
		if i.Release != "" && !strings.HasSuffix(value, " "+i.Release) {
			t.Fatalf("%q: release %q", value, i.Release)
		}
		c := parseCancel(id, value)
		if c.Reason != "" && !strings.HasSuffix(value, " "+c.Reason) {
			t.Fatalf("%q: reason %q", value, c.Reason)
		}
	})
}

// The reply of a script of the registry.
func FuzzView(f *testing.F) {
	f.Add("i1 sid i2 i3 i1 i5 i6 s1700000000000 i1 i0")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var values []any
		for w := range strings.FieldsSeq(text) {
			switch w[0] {
			case 'i':
				values = append(values, int64(len(w)))
			case 's':
				values = append(values, w[1:])
			default:
				values = append(values, nil)
			}
		}
		v := viewOf(values)
		if len(values) < viewed && v.May && len(values) < 9 {
			t.Fatalf("%q lets an instance take work", text)
		}
	})
}
