package queue

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// A [Last] that was read is written so that it is read the same again.
func FuzzParseLast(f *testing.F) {
	for _, s := range []string{"1 2 3 4 0", "1 2 3 4 1", "", "1 2 3 4", "1 2 3 4 5 6", "-1 -2 -3 -4 0", "9223372036854775808 0 0 0 0", "0x1 2 3 4 0", "1\n2 3 4 0", "a"} {
		f.Add(s)
	}
	for _, r := range lastRuns {
		f.Add(r.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		last, err := ParseLast(s)
		if err != nil {
			return
		}
		if again, err := ParseLast(last.String()); err != nil || again != last {
			t.Fatalf("%q: %+v, written %q, read %+v, %v", s, last, last.String(), again, err)
		}
	})
}

func FuzzParseBehind(f *testing.F) {
	for _, s := range []string{"", "2 3", "2 3 4 5", "1 {}", "2", "x 3", "-1  -2", "0 9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBehind(s)
		if err != nil {
			return
		}
		if again, err := ParseBehind(b.String()); err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%q: %+v, written %q, read %+v, %v", s, b, b.String(), again, err)
		}
	})
}

// A cursor comes back from a person.
func FuzzParseCursor(f *testing.F) {
	for _, c := range []cursor{{}, {'t', 1, "a"}, {'h', 1e300, "k\x1f1\x1fs\x1fid"}, {'t', math.Inf(-1), ""}, {'t', 0.5, "a b"}} {
		f.Add(c.String())
	}
	f.Add("dE5hTiBh")
	f.Add("not base64!")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseCursor(s)
		if err != nil {
			if !errors.Is(err, task.ErrInvalid) {
				t.Fatalf("%q: %v is no refusal", s, err)
			}
			return
		}
		if again, err := parseCursor(c.String()); err != nil || again != c {
			t.Fatalf("%q: %+v, written %q, read %+v, %v", s, c, c.String(), again, err)
		}
	})
}

// The members and values that scripts write, as they may be damaged.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		"default|normal|job", "q|urgent|t", "||", "5 1700000000000 1.7e+12", "5 1 2 \x1fjob", "9e300 9e300 9e300", "k\x1f1700000000000\x1fdue\x1fid",
		"a\x1fnan\x1fb\x1fc", "1 retired v1\nlast\ndefinition", "1 deleted ann\nlast\n", "1 2 made ann\t{}", "1 9223372036854775807 made ann\t", "1 2\n\n", "", "inf", "-9e300",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := ParseLane(s); err == nil {
			if again, err := ParseLane(l.String()); err != nil || again != l {
				t.Fatalf("%q is lane %v, which reads %v, %v", s, l, again, err)
			}
		}
		if _, at, due, ok := parseClaim(s); ok {
			_, _ = at.MarshalJSON()
			_ = store.Ms(due)
		}
		if id, _, set, ok := parseHeld(s); ok && (strings.Contains(id, "\x1f") || strings.Contains(set, "\x1f")) {
			t.Fatalf("%q: task %q waits for lane %q", s, id, set)
		}
		if r, ok := parseRetired("name", s); ok && !strings.HasSuffix(s, "\n"+r.Last+"\n"+r.Definition) {
			t.Fatalf("%q: %+v", s, r)
		}
		if r, ok := parseRevision(s); ok {
			if _, err := r.At.MarshalJSON(); err != nil || r.Number <= 0 || !strings.HasSuffix(s, "\t"+r.Definition) {
				t.Fatalf("%q: %+v, %v", s, r, err)
			}
		}
		if at := parseScore(s); at.Year() > 9999 && at.UnixMilli() < 0 {
			t.Fatalf("%q is at %v", s, at)
		}
	})
}
