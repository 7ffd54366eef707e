package main

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

const timeLayout = "2006-01-02T15:04:05.999Z07:00"

// at is a moment for a person: RFC 3339, with milliseconds if it has any.
func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(timeLayout)
}

// ago says how far a moment lies from now: "in 3s", "2m ago".
func ago(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "-"
	case d >= 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// span is a duration as people say it: 437ms, 4.4s, 24m3s, 5h12m, 12d3h.
func span(d time.Duration) string {
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

// both is a moment as a table shows it: relative, then absolute.
func both(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return ago(t, now) + " (" + at(t) + ")"
}

// parseMoment reads a time, a date (its midnight, in the zone of this machine), or a duration: that long before now. "" is the zero
// time.
func parseMoment(field, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t, err = time.ParseInLocation(time.DateOnly, s, time.Local)
	}
	if err == nil {
		return t, task.CheckDue(field, t)
	}
	d, err := schedule.ParseDuration(s)
	if err != nil {
		return time.Time{}, refuse(field, s, "neither a time, a date nor a duration",
			"RFC 3339 such as 2030-01-31T09:00:00Z, a date such as 2030-01-31, or how long ago, such as 2h or 7d")
	}
	return now.Add(-d), nil
}
