package admin

import (
	"fmt"
	"slices"
	"strings"
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

// Figures that say the same are added up, and an incident that shows in several partitions is one line, with the slots of all.
func TestStatus_addsUpThoseOfPartitions(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000).UTC()
	dead := func(n int64, cause string) Trouble {
		say := func(n int64) string { return fmt.Sprint(n, " failed: ", cause) }
		return Trouble{Kind: DeadTasks, Name: "mail", Text: say(n), sum: sum{n, cause, say}}
	}
	cut := func(from time.Duration, lead string, missed int64) Trouble {
		n := &incident{
			from: at.Add(from), to: at.Add(from + 10*time.Second), since: at.Add(from + 9*time.Second), paused: 9 * time.Second,
			lost: []who{{"a", "pod", "v1"}}, back: map[string]bool{"a": true}, leads: who{lead, "pod", "v1"}, missed: missedSlots{n: missed},
		}
		return n.trouble()
	}
	var s Status
	for i, lines := range [][]Trouble{
		{dead(3, "x"), cut(0, "a", 2)}, {dead(1, "x"), dead(2, "y"), cut(time.Second, "b", 3)}, {dead(1, "x"), cut(10*time.Minute, "a", 7)},
	} {
		s.join(i+1, &Status{Asked: at, Trouble: lines})
	}
	var got []string
	for _, x := range s.Trouble {
		got = append(got, fmt.Sprint(x.Partitions, " ", x.Text))
	}
	want := []string{"[1 2 3] 5 failed: x", "[1 2] a (v1) was cut off", "[2] 2 failed: y", "[3] a (v1) was cut off"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, text := range want {
		if !strings.HasPrefix(got[i], text) {
			t.Errorf("%q, want %q", got[i], text)
		}
	}
	if both := s.Trouble[1]; !strings.Contains(both.Text, "5 slots were missed") || !both.Until.Equal(at.Add(11*time.Second)) || strings.Contains(both.Text, "b (v1) leads") {
		t.Errorf("%+v", both)
	}
}
