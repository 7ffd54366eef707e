package main

import (
	"testing"

	"github.com/onbeat/onbeat/admin"
)

// Invalid times that another program has written hide nothing else from --json.
func TestJSON_showsTheRestBesideTimesThatAreNone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	prefix := "onbeat:{" + s.ns + "}:"
	s.must("enqueue", "echo", "--id", "good")
	s.must("enqueue", "echo", "--id", "bad")
	due, err := s.rdb.Keys(t.Context(), prefix+"due:*").Result()
	if err != nil || len(due) != 1 {
		t.Fatalf("%v: %v", due, err)
	}
	for _, args := range [][]any{
		{"ZADD", due[0], "inf", "bad"}, {"XADD", prefix + "events", "9999999999999999-1", "event", "led"},
		{"XADD", prefix + "history", "9999999999999999-1", "slots", "s@9999999999999999 done 1 5"},
	} {
		if err := s.rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var page admin.List[admin.Task]
	s.json(&page, "tasks", "list")
	if len(page.Items) != 2 {
		t.Errorf("%+v", page.Items)
	}
	var line admin.Task
	if s.json(&line, "tasks", "show", "bad"); line.At.Year() != 9999 {
		t.Errorf("%+v", line)
	}
	var events admin.List[admin.Event]
	if s.json(&events, "events"); len(events.Items) != 1 || events.Items[0].At.Year() != 9999 {
		t.Errorf("%+v", events)
	}
	s.must("tasks", "list")
	s.must("events")
}
