package schedule

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"1ms": time.Millisecond, "1s": time.Second, "1h30m": 90 * time.Minute, "1d": day, "2w": 2 * week,
		"365d": 365 * day, "1.5d": 36 * time.Hour, "0.001s": time.Millisecond, ".5s": 500 * time.Millisecond,
		"1.s": time.Second, "+5m": 5 * time.Minute, " 5m ": 5 * time.Minute, "1000us": time.Millisecond,
		"1000000ns": time.Millisecond, "1500µs500μs": 2 * time.Millisecond, "0": 0, "0s": 0, "36525d": MaxDuration,
		"1m1m": 2 * time.Minute, "0.000000000000000001h3600s": -1, "00000000000000001s": time.Second,
	} {
		got, err := ParseDuration(s)
		if want < 0 {
			wantField(t, err, "duration")
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", s, got, err, want)
		}
	}
}

func TestParseDuration_refuses(t *testing.T) {
	t.Parallel()
	for s, says := range map[string]string{
		"": "empty", " ": "empty", "5": "without a unit", "-5s": "negative", "5x": "unknown unit", "5M": "unknown unit",
		"s": "not a duration", ".s": "not a duration", "1h-5m": "not a duration", "0.5ms": "finer", "1us": "finer",
		"36526d": "out of range", "9999999999999w": "out of range", "18262d18264d": "out of range",
		"99999999999999999999d": "too many digits", "0.1234567890123456789s": "too many digits",
		"P1D": "not a duration", "1 h": "unknown unit", "∞": "not a duration",
		strings.Repeat("9", 1<<20): "too many digits", strings.Repeat("1w", 1<<20): "out of range",
	} {
		_, err := ParseDuration(s)
		if wantField(t, err, "duration"); !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: got %q, want it to say %q", s, err, says)
		}
	}
	_, err := ParseEvery("0s")
	wantField(t, err, "every")
	_, err = ParseEvery("x")
	wantField(t, err, "every")
}

func TestFormatDuration_isReadBack(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Minute: "1h30m", 14 * day: "14d", -time.Minute: "-1m", 1: "1ns",
		1500 * time.Microsecond: "1ms500us", day + time.Millisecond: "1d1ms",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, MaxDuration.Milliseconds()).Draw(t, "ms")) * time.Millisecond
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%v comes back as %v, %v", d, got, err)
		}
		// A duration that Go prints is read as Go means it.
		if got, err := ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("%v is read as %v, %v", d, got, err)
		}
	})
}
