package schedule

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest interval: 100 years of 365.25 days.
const MaxDuration = 36525 * day

const (
	day  = 24 * time.Hour
	week = 7 * day
)

const durationHint = "write numbers with units ms, s, m, h, d or w, such as 1h30m or 2w"

// ParseEvery reads an interval like [ParseDuration], but refuses zero.
func ParseEvery(s string) (time.Duration, error) {
	d, err := parseDuration("every", s)
	if err != nil {
		return 0, err
	}
	return d, checkDuration("every", d, 1)
}

// ParseDuration reads a duration in Go's notation, and also in days and weeks: "250ms", "1h30m", "1.5d", "2w". A day is
// always 24 hours. The result is in whole milliseconds, from 0 to [MaxDuration]; ParseDuration refuses anything else with a
// *[task.FieldError].
func ParseDuration(s string) (time.Duration, error) { return parseDuration("duration", s) }

func parseDuration(field, s string) (time.Duration, error) {
	rest := strings.TrimSpace(s)
	if rest == "" {
		return 0, invalid(field, s, "empty", durationHint)
	}
	if rest[0] == '-' {
		return 0, invalid(field, s, "negative", "write it without a minus sign")
	}
	rest = strings.TrimPrefix(rest, "+")
	if rest == "0" {
		return 0, nil
	}
	var total time.Duration
	for ok := true; ok; ok = rest != "" {
		var part time.Duration
		var fault string
		if part, rest, fault = durationPart(rest); fault != "" {
			return 0, invalid(field, s, fault, durationHint)
		}
		// Both are at most MaxDuration, so the sum does not overflow.
		if total += part; total > MaxDuration {
			return 0, tooLong(field, s)
		}
	}
	if total%time.Millisecond != 0 {
		return 0, invalid(field, s, "finer than a millisecond", "use whole milliseconds")
	}
	return total, nil
}

// durationPart reads one number and its unit from the front of s. For a part that is too long it returns more than
// MaxDuration.
func durationPart(s string) (d time.Duration, rest, fault string) {
	whole, n := digits(s)
	rest = s[n:]
	var frac uint64
	fracLen := 0
	if strings.HasPrefix(rest, ".") {
		frac, fracLen = digits(rest[1:])
		rest = rest[1+fracLen:]
	}
	if n+fracLen == 0 {
		return 0, rest, "not a duration"
	}
	if n > 18 || fracLen > 18 {
		return 0, rest, "too many digits"
	}
	unit, n := durationUnit(rest)
	switch {
	case n == 0 && rest == "":
		return 0, rest, "a number without a unit"
	case n == 0:
		return 0, rest, "unknown unit"
	}
	hi, lo := bits.Mul64(whole, uint64(unit))
	if hi != 0 || lo > uint64(MaxDuration) {
		return MaxDuration + 1, rest[n:], ""
	}
	scale := uint64(1)
	for range fracLen {
		scale *= 10
	}
	hi, fl := bits.Mul64(frac, uint64(unit))
	nanos, rem := bits.Div64(hi, fl, scale) // frac < scale, so hi < scale and this cannot panic
	if rem != 0 {
		return 0, rest, "finer than a millisecond"
	}
	return time.Duration(lo + nanos), rest[n:], ""
}

// digits reads a decimal number from the front of s and returns its length. The value is meaningless beyond 18 digits.
func digits(s string) (v uint64, n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		v = v*10 + uint64(s[n]-'0')
		n++
	}
	return v, n
}

// durationUnit reads a unit from the front of s and returns its length.
func durationUnit(s string) (time.Duration, int) {
	n := strings.IndexAny(s, "0123456789.+-")
	if n < 0 {
		n = len(s)
	}
	switch s[:n] {
	case "ns":
		return time.Nanosecond, n
	case "us", "µs", "μs": // the micro sign and the Greek letter mu
		return time.Microsecond, n
	case "ms":
		return time.Millisecond, n
	case "s":
		return time.Second, n
	case "m":
		return time.Minute, n
	case "h":
		return time.Hour, n
	case "d":
		return day, n
	case "w":
		return week, n
	}
	return 0, 0
}

// FormatDuration writes d in its short form: "1s", "1h30m", "2d12h". [ParseDuration] reads it back if it is in range.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b []byte
	u := uint64(d)
	if d < 0 {
		b, u = append(b, '-'), -u
	}
	for _, unit := range [...]struct {
		size time.Duration
		name string
	}{
		{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"},
		{time.Millisecond, "ms"}, {time.Microsecond, "us"}, {time.Nanosecond, "ns"},
	} {
		if n := u / uint64(unit.size); n > 0 {
			b = append(strconv.AppendUint(b, n, 10), unit.name...)
			u %= uint64(unit.size)
		}
	}
	return string(b)
}

// checkDuration refuses a rule's duration that is not in [least, MaxDuration] or not in whole milliseconds.
func checkDuration(field string, d, least time.Duration) error {
	switch {
	case d < 0:
		return invalid(field, FormatDuration(d), "negative", "write it without a minus sign")
	case d < least:
		return invalid(field, FormatDuration(d), "zero", "the shortest is 1ms")
	case d%time.Millisecond != 0:
		return invalid(field, FormatDuration(d), "finer than a millisecond", "use whole milliseconds")
	case d > MaxDuration:
		return tooLong(field, FormatDuration(d))
	}
	return nil
}

func tooLong(field, s string) error {
	return invalid(field, s, "out of range 1ms-"+FormatDuration(MaxDuration), "the longest is 100 years")
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
