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
	for _, s := range []string{
		"", " ", "5", "-5s", "5x", "5M", "s", ".s", "1h-5m", "0.5ms", "1us", "36526d", "9999999999999w", "18262d18264d", "99999999999999999999d",
		"0.1234567890123456789s", "P1D", "1 h", "∞", strings.Repeat("9", 1<<20), strings.Repeat("1w", 1<<20),
	} {
		_, err := ParseDuration(s)
		wantField(t, err, "duration")
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
