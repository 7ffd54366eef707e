package wording

import (
	"fmt"
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

// Count is a number of things: "1 slot", "3 slots".
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
