package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

func TestPreview_explainsDaylightSaving(t *testing.T) {
	t.Parallel()
	r := runWith(t.Context(), testEnv(), "", "preview", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2026-03-28T00:00:00Z", "--count", "3")
	if r.code != 0 || !strings.Contains(r.out, "2026-03-29T03:00:00+02:00  CEST") || !strings.Contains(r.out, "02:30 does not exist") {
		t.Errorf("%+v", r)
	}
	var v struct {
		Rule  string
		Slots []admin.Slot
	}
	r = runWith(t.Context(), testEnv(), "", "preview", "--every", "90s", "--jitter", "10s", "--from", "2026-01-01T00:00:00Z", "--count", "4", "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || len(v.Slots) != 4 {
		t.Fatalf("%v: %+v", err, r)
	}
	for i, l := range v.Slots {
		if want := time.Date(2026, 1, 1, 0, 0, 90*i, 0, time.UTC); !l.Slot.Equal(want) || l.Due.Before(l.Slot) || l.Due.Sub(l.Slot) >= 10*time.Second {
			t.Errorf("slot %d is %s, due %s; want %s", i, l.Slot, l.Due, want)
		}
	}
	if r := runWith(t.Context(), testEnv(), "", "preview", "--every", "1h", "--jitter", "5m"); !strings.Contains(r.out, "DUE") {
		t.Errorf("no column for the jitter: %+v", r)
	}
}

func TestPreview_fromIsInclusive(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string][]string{"cron": {"--cron", "0 * * * *"}, "every": {"--every", "1h", "--start", "aligned"}, "every from": {"--every", "1h"}} {
		r := runWith(t.Context(), testEnv(), "", append([]string{"preview", "--from", "2026-01-01T05:00:00Z", "--count", "1"}, rule...)...)
		if cells(r.out, "2026-01-01T05:00:00Z") == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestPreview_ofASchedule(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 7m, jitter: 1m, start: aligned, task: echo}, {name: few, every: 1h, max_runs: 2, task: echo}]\n"))
	var v struct {
		Rule  string
		Slots []admin.Slot
	}
	from := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s.json(&v, "preview", "a", "--count", "20", "--from", from.Format(time.RFC3339))
	if len(v.Slots) != 20 || !strings.Contains(v.Rule, "7m") {
		t.Fatalf("%+v", v)
	}
	first := v.Slots[0].Slot
	for i, l := range v.Slots {
		if want := first.Add(time.Duration(i) * 7 * time.Minute); !l.Slot.Equal(want) || l.Slot.Before(from) || l.Slot.Sub(from) > 20*7*time.Minute {
			t.Errorf("slot %d is %s, want %s", i, l.Slot, want)
		}
	}
	var shown struct{ Upcoming []admin.Slot }
	s.json(&shown, "schedules", "show", "a")
	if s.json(&v, "preview", "a"); len(v.Slots) != 10 || !v.Slots[0].Slot.Equal(shown.Upcoming[0].Slot) || !v.Slots[0].Due.Equal(shown.Upcoming[0].Due) {
		t.Errorf("preview = %+v, and show = %+v", v.Slots[0], shown.Upcoming[0])
	}
	if s.json(&v, "preview", "few"); len(v.Slots) != 2 {
		t.Errorf("of a schedule with two runs: %+v", v.Slots)
	}
	s.must("schedules", "pause", "a")
	if r := s.run("", "preview", "a"); r.code != exitFine || !strings.Contains(r.err, "a is paused") {
		t.Errorf("of a paused one: %+v", r)
	}
	s.fails(1, []string{"preview", "b"}, `schedule "b": not found`)
	s.fails(2, []string{"preview", "a", "--every", "1s"}, "a schedule and a rule exclude each other")
	s.fails(2, []string{"preview", "a", "--from", "x"}, `from "x": not a time, a date or a duration`)
}
