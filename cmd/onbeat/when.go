package main

import (
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

const timeLayout = "2006-01-02T15:04:05.999Z07:00"

// at returns a time as text for a person: RFC 3339, with milliseconds if it has any.
func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(timeLayout)
}

// both returns a time as a table shows it: relative, then absolute.
func both(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return wording.Ago(t, now) + " (" + at(t) + ")"
}

// parseMoment reads a time, a date (midnight in the zone of this machine), or a duration, which means that long before now. It
// returns the zero time for "".
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
		return time.Time{}, refuse(field, s, "not a time, a date or a duration",
			"RFC 3339 such as 2030-01-31T09:00:00Z, a date such as 2030-01-31, or how long ago, such as 2h or 7d")
	}
	return now.Add(-d), nil
}
