package schedule

import (
	"encoding/json"
	"testing"
	"time"
)

// A text that is read is written so that it reads the same. Any other text is refused in one line.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"5s", "1h30m", "1.5d", "2w", "0", "-5s", "250ms", "1000000w", "9223372036854775807ns", "1.0000001s", " 5s ", "+1m", ".5h", "1e3s", "٣s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		every, err := ParseEvery(s)
		if err != nil {
			wantOneLine(t, err)
		}
		d, other := ParseDuration(s)
		if other != nil {
			wantOneLine(t, other)
			if err == nil {
				t.Fatalf("%q: an interval, and no duration", s)
			}
			return
		}
		if err == nil && every != d {
			t.Fatalf("%q: %v as an interval, %v as a duration", s, every, d)
		}
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d || d < 0 || d > MaxDuration || d%time.Millisecond != 0 {
			t.Fatalf("%q: %v, written %q, read %v, %v", s, d, FormatDuration(d), again, err)
		}
	})
}

// A rule as it lies in Redis, or in a note of the history.
func FuzzRule(f *testing.F) {
	for _, s := range []string{
		`{"every":"1s","start":"aligned","jitter":"100ms","missed":"all","catch_up":"1h","overlap":"skip","max_runs":3}`,
		`{"cron":"0 2 * * *","timezone":"Asia/Seoul","dst":{"gap":"after","overlap":"both"},"until":"2030-01-31T09:00:00Z"}`,
		`{"every":"1ms","until":"0001-01-01T00:00:00Z"}`, `{"cron":"@every 1s"}`, `{"every":"-1s"}`, `{"every":1}`, `[]`, `{"overlap":"later"}`, `{}`,
	} {
		f.Add(s, int64(1_767_225_600_000))
	}
	f.Fuzz(func(t *testing.T, text string, ms int64) {
		var r Rule
		if json.Unmarshal([]byte(text), &r) != nil {
			return
		}
		once, err := json.Marshal(r)
		if err != nil {
			return // a moment that has no RFC 3339
		}
		var again Rule
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%q was written as %s: %v", text, once, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(once) {
			t.Fatalf("%q is not stable: %s, then %s, %v", text, once, twice, err)
		}
		if err := r.Validate(); err != nil {
			wantOneLine(t, err)
			return
		}
		g, err := r.Grid(time.UnixMilli(ms))
		if err != nil {
			wantOneLine(t, err)
			return
		}
		at := time.UnixMilli(ms / 2)
		if next := g.Next(at); !next.IsZero() && (!next.After(at) || !g.Prev(next.Add(1)).Equal(next)) {
			t.Fatalf("%s: Next(%v) = %v", once, at, next)
		}
	})
}
