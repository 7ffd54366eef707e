package admin

import (
	"slices"
	"testing"
	"time"
)

// The status of a namespace that is split has each line once: those that partitions share word for word are one, which names them, and
// no figure of one partition stands for all.
func TestStatus_joinsThoseOfPartitions(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	lines := func(list ...Trouble) []Trouble { return list }
	parts := []Status{
		{Asked: at, Leader: "a", Release: "v2", Trouble: lines(
			Trouble{Kind: "dead", Name: "mail", Text: "3 tasks are dead", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at},
			Trouble{Kind: "missed", Name: "beat", Text: "missed", ofSchedule: true},
		), Counts: StatusCounts{Schedules: 2, Bad: 1, Dead: 3, Running: 1}, working: []Instance{{ID: "a"}, {ID: "b"}}},
		{Asked: at.Add(-time.Second), Leader: "b", Release: "v2", Trouble: lines(
			Trouble{Kind: "dead", Name: "mail", Text: "4 tasks are dead", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at.Add(-time.Hour)},
		), Counts: StatusCounts{Schedules: 3, Well: 3, Dead: 4, Running: 2}, working: []Instance{{ID: "b"}}},
		{Asked: at, Leader: "a", Release: "v2", Trouble: lines(
			Trouble{Kind: "no-leader", Text: "nobody leads", Warning: true},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at},
			Trouble{Kind: "no-leader", Text: "nobody leads", Since: at}, // of another cause: it stays a line of its own
		), CouldNotAsk: []Unasked{{"archive", "away"}}, More: 2},
	}
	var s Status
	for i := range parts {
		s.join(i+1, &parts[i])
	}
	type line struct {
		kind, text string
		warning    bool
		parts      string
	}
	var got []line
	for _, x := range s.Trouble {
		text := ""
		for _, p := range x.Partitions {
			text += string(rune('0' + p))
		}
		got = append(got, line{x.Kind, x.Text, x.Warning, text})
	}
	want := []line{
		{"dead", "3 tasks are dead", false, "1"}, {"no-leader", "nobody leads", false, "123"}, {"missed", "missed", false, ""},
		{"dead", "4 tasks are dead", false, "2"}, {"no-leader", "nobody leads", true, "3"}, {"no-leader", "nobody leads", false, "3"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if since := s.Trouble[1].Since; !since.Equal(at.Add(-time.Hour)) {
		t.Errorf("since %v, want the earliest", since)
	}
	if !s.Asked.Equal(at.Add(-time.Second)) || s.More != 2 || len(s.CouldNotAsk) != 1 || len(s.working) != 2 {
		t.Errorf("%+v", s)
	}
	if len(s.Leads) != 2 || !slices.Equal(s.Leads[0].Partitions, []int{1, 3}) || !slices.Equal(s.Leads[1].Partitions, []int{2}) {
		t.Errorf("%+v", s.Leads)
	}
	if c := s.Counts; c.Schedules != 5 || c.Well != 3 || c.Bad != 1 || c.Dead != 7 || c.Running != 3 {
		t.Errorf("%+v", c)
	}
}
