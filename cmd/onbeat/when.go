package main

import (
	"time"

	"github.com/onbeat/onbeat/schedule"
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

// span is a duration in its two largest units.
func span(d time.Duration) string {
	for _, step := range []struct{ from, unit time.Duration }{
		{48 * time.Hour, time.Hour}, {2 * time.Hour, time.Minute}, {10 * time.Second, time.Second},
		{time.Second, 100 * time.Millisecond}, {0, time.Millisecond},
	} {
		if d >= step.from {
			return schedule.FormatDuration(d.Truncate(step.unit))
		}
	}
	return "0s"
}

// both is a moment as a table shows it: relative, then absolute.
func both(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return ago(t, now) + " (" + at(t) + ")"
}

// parseMoment reads a time, or a duration: that long ago.
func parseMoment(field, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	d, err := schedule.ParseDuration(s)
	if err != nil {
		return time.Time{}, refuse(field, s, "neither a time nor a duration", "RFC 3339 such as 2030-01-31T09:00:00Z, or how long ago, such as 2h")
	}
	return now.Add(-d), nil
}
