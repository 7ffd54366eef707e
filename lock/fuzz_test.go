package lock

import (
	"strconv"
	"testing"

	"github.com/onbeat/onbeat/internal/store"
)

// The reply of a script of a lock: an invalid number counts as 0, so that no holder gets the lock by it.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"1", "0", "", "x", "9e300", "9223372036854775808", "-1"} {
		f.Add(s, 0)
	}
	f.Add("1", 5)
	f.Add("1", 1)
	f.Fuzz(func(t *testing.T, s string, i int) {
		if i < 0 {
			return
		}
		got := store.Values{s, nil, []any{s}}.Int(i)
		if n, err := strconv.ParseInt(s, 10, 64); i == 0 && err == nil && got != n {
			t.Fatalf("%q is %d", s, got)
		}
		if i > 0 && got != 0 {
			t.Fatalf("value %d is %d", i, got)
		}
	})
}
