package wording

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Ago says how far a moment lies from now: "in 3s", "2m ago".
func Ago(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "-"
	case d >= 0:
		return "in " + Span(d)
	default:
		return Span(-d) + " ago"
	}
}

// Span is a duration as people say it: 437ms, 4.4s, 24m3s, 5h12m, 12d3h.
func Span(d time.Duration) string {
	minutes, hours := int(d.Minutes()), int(d.Hours())
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", minutes, int(d.Seconds())%60)
	case d < 72*time.Hour:
		return fmt.Sprintf("%dh%dm", hours, minutes%60)
	}
	return fmt.Sprintf("%dd%dh", hours/24, hours%24)
}

// Field is the value of an event's field as people read it: a moment, which an event holds in milliseconds since 1970, as a time.
func Field(name, value string) string {
	ms, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil || !slices.Contains([]string{"from", "kept", "known", "lease", "since", "to"}, name):
		return value
	case ms <= 0:
		return "nothing"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Count is a number of things: "1 slot", "3 slots".
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
