package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
)

// ts reads a time as RFC 3339, or as a date and time in UTC.
func ts(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	panic("not a time: " + s)
}

func mustGrid(t testing.TB, r Rule, anchor time.Time) Grid {
	t.Helper()
	g, err := r.Grid(anchor)
	if err != nil {
		t.Fatalf("Grid of %s: %v", Describe(r), err)
	}
	return g
}

func cronIn(expr, zone string) Rule { return Rule{Cron: expr, Timezone: zone} }

// local lists the slots in (from, to] as local times, with their offset.
func local(g Grid, loc *time.Location, from, to time.Time) []string {
	var got []string
	for s := range g.Between(from, to) {
		got = append(got, s.In(loc).Format("2006-01-02 15:04:05-07:00"))
	}
	return got
}

func wantField(t *testing.T, err error, field string) *task.FieldError {
	t.Helper()
	var fe *task.FieldError
	if !errors.As(err, &fe) || !errors.Is(err, task.ErrInvalid) {
		t.Fatalf("got error %v, want a FieldError that is ErrInvalid", err)
	}
	if fe.Field != field {
		t.Errorf("got field %q (%v), want %q", fe.Field, err, field)
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("the error is not one line: %q", err)
	}
	return fe
}
