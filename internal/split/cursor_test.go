package split_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/split"
)

func TestCursor_isWhatItsTextSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "0-0", "0": "0-0", "7": "7-0", "7-1": "7-1", "7-1@2": "7-1@2", "7-1@2,8-0@1": "7-1@2,8-0@1", "7-1@2,8-0@3,9-0@1,9-1@3": "7-1@2,9-0@1,9-1@3",
	} {
		c, err := split.ParseCursor(text)
		if err != nil || c.String() != want {
			t.Errorf("%q: %q %v, want %q", text, c, err, want)
		}
	}
	for _, text := range []string{
		"x", "-1", "+1", "1-", "1-x", "1-+1", "1-1@", "1-1@0", "1-1@257", "1-1@-1", "1-1@x", "1-1@99999999999999999999", "1@1@1", ",", "1-1,", "1-1,2-2", "1-1@1,",
		"18446744073709551615-18446744073709551615", "18446744073709551616",
	} {
		if c, err := split.ParseCursor(text); err == nil {
			t.Errorf("%q: %v", text, c)
		}
	}
}

// A reader may read the events of partitions in any order, and go on with the cursor after any of them: it gets each once. An ID alone
// goes on behind all events that lie before it in one list.
func TestCursor_losesNoneAndDoublesNone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 32))
		parts := 1 + rnd.IntN(5)
		streams := make([][]split.Place, parts+1)
		for i := range 60 {
			p := split.Place{MS: 100 + uint64(i/7) + rnd.Uint64N(3), N: uint64(i % 3), Partition: 1 + rnd.IntN(parts)}
			if s := streams[p.Partition]; len(s) == 0 || p.Compare(s[len(s)-1]) > 0 {
				streams[p.Partition] = append(streams[p.Partition], p)
			}
		}
		all := slices.Concat(streams...)
		slices.SortFunc(all, split.Place.Compare)
		from := split.Cursor{}
		want := all
		if rnd.IntN(2) == 0 {
			k := rnd.IntN(len(all))
			from, _ = split.ParseCursor(all[k].String())
			want = all[k+1:]
		}
		seen := map[split.Place]int{}
		for left := true; left; {
			left = false
			for _, part := range rnd.Perm(parts) {
				begin := from.In(part + 1)
				next := slices.IndexFunc(streams[part+1], func(p split.Place) bool { return p.Compare(begin) > 0 })
				if next < 0 {
					continue
				}
				for _, p := range streams[part+1][next:] {
					if left = true; from.Has(p) {
						t.Fatalf("seed %d: %s has %s, which lies behind %s", seed, from, p, begin)
					}
					seen[p]++
					if from = from.Past(p); !from.Has(p) {
						t.Fatalf("seed %d: %s has not %s", seed, from, p)
					}
					if rnd.IntN(3) == 0 { // and comes back
						again, err := split.ParseCursor(from.String())
						if err != nil || again.String() != from.String() || again.Most() > parts {
							t.Fatalf("%s: %s %v", from, again, err)
						}
						from = again
						break
					}
				}
			}
		}
		if len(seen) != len(want) {
			t.Fatalf("seed %d: %d events, want %d", seed, len(seen), len(want))
		}
		for _, p := range want {
			if seen[p] != 1 {
				t.Fatalf("seed %d: %s came %d times", seed, p, seen[p])
			}
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("7-1@2,8-0@1")
	f.Add("7")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := split.ParseCursor(text)
		if err != nil {
			return
		}
		again, err := split.ParseCursor(c.String())
		if err != nil || again.String() != c.String() || c.Most() > split.Most || strings.ContainsAny(c.String(), "\r\n ") {
			t.Errorf("%q: %q, again %q %v", text, c, again, err)
		}
	})
}
