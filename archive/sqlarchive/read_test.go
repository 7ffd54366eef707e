package sqlarchive_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
)

// A failover took entries back, and their IDs were given again: notes of one place are more than one page reads.
func TestArchive_readsNotesOfOnePlaceThatFillAPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		const many = 2500
		a := open(t, url)
		var entries []history.Entry
		for i := range many {
			e := ran(now, 0, 0)
			e.Notes[0].TaskID = fmt.Sprint("report!", i)
			missed := history.Note{Schedule: fmt.Sprint("s", i), From: now, To: now, Word: history.Missed, Count: 1, At: now}
			entries = append(entries, e, history.Entry{ID: e.ID, At: now, Notes: []history.Note{missed}})
		}
		add(t, a, entries...)
		count := func(which string, list []history.Entry) {
			t.Helper()
			seen := map[string]int{}
			for _, e := range list {
				for _, n := range e.Notes {
					seen[n.Schedule+" "+n.TaskID]++
				}
			}
			if len(list) != 1 || len(seen) != 2*many || len(list[0].Notes) != 2*many {
				t.Errorf("%s: %d entries, %d different notes; want 1 and %d", which, len(list), len(seen), 2*many)
			}
		}
		count("the oldest first", all(t, a))
		var back []history.Entry
		must(t, a.HistoryBefore(t.Context(), "", "", func(e history.Entry) bool {
			back = append(back, e)
			return true
		}))
		count("the newest first", back)
	})
}

func TestArchive_readsTheNewestRunsOfATask(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		var entries []history.Entry
		for i := range 1200 {
			entries = append(entries, ran(now.Add(time.Duration(i)*time.Second), 0, 1))
		}
		add(t, a, entries...)
		notes, err := a.Runs(t.Context(), entries[0].Notes[0].TaskID)
		must(t, err)
		if len(notes) != 1000 || !notes[0].At.Equal(entries[200].At) || !notes[999].At.Equal(entries[1199].At) {
			t.Errorf("%d runs, want the newest 1,000, the oldest first", len(notes))
		}
	})
}

// People page through events and revisions: one reading returns 100 if they say nothing.
func TestArchive_readsAHundredIfNobodySaysHowMany(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		b := batch(archive.Position{}, ran(now, 0, 1))
		for i := range 150 {
			b.Events = append(b.Events, archive.Event{ID: idOf(now, i), At: now, Kind: "joined"})
			b.Revisions = append(b.Revisions, archive.Revision{Schedule: "report", Number: int64(i + 1), At: now, What: "changed"})
		}
		must(t, a.Add(t.Context(), archive.Position{}, b))
		events, err := a.Events(t.Context(), time.Time{}, time.Time{}, 0)
		must(t, err)
		if len(events) != 100 || events[99].ID != b.Events[149].ID {
			t.Errorf("%d events, want the newest 100", len(events))
		}
		revisions, err := a.Revisions(t.Context(), "report", 0, 0)
		must(t, err)
		if len(revisions) != 100 || revisions[0].Number != 150 {
			t.Errorf("%d revisions, want the newest 100", len(revisions))
		}
	})
}

// A definition holds its payload, and payload_limit may be raised over what other texts have.
func TestArchive_cutsNoDefinition(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		long := strings.Repeat("d", 2<<20)
		b := batch(archive.Position{}, ran(now, 0, 1))
		b.Schedules = []archive.Schedule{{Name: "report", Definition: long, Last: "last"}}
		b.Revisions = []archive.Revision{{Schedule: "report", Number: 1, At: now, What: "made", Definition: long}}
		must(t, a.Add(t.Context(), archive.Position{}, b))
		list, err := a.Schedules(t.Context(), "", 10)
		must(t, err)
		if len(list) != 1 || list[0] != b.Schedules[0] {
			t.Errorf("%d schedules, want one that is whole", len(list))
		}
		said, err := a.Revisions(t.Context(), "report", 0, 10)
		must(t, err)
		if len(said) != 1 || said[0].Definition != long {
			t.Errorf("%d revisions, want one that is whole", len(said))
		}
	})
}

// A run may have been claimed days before its note, or by a clock that is ahead. It is found from the place of its note alone.
func TestArchive_readsRunsThatBeganAsFarFromTheirNoteAsCanBe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		var want []history.Entry
		for i, early := range []time.Duration{3 * day, 3*day + time.Millisecond, -day, -day - time.Millisecond} {
			e := ran(now.Add(time.Duration(i)*time.Second), 0, i)
			e.Notes[0].Claimed = e.At.Add(-early)
			want = append(want, e)
		}
		add(t, a, want...)
		for i, e := range want {
			var on, back []history.Entry
			must(t, a.History(t.Context(), e.At, func(e history.Entry) error {
				on = append(on, e)
				return nil
			}))
			if !reflect.DeepEqual(on, want[i:]) {
				t.Errorf("since number %d: %v", i, on)
			}
			must(t, a.HistoryBefore(t.Context(), idOf(e.At, 1), "", func(e history.Entry) bool {
				back = append(back, e)
				return true
			}))
			slices.Reverse(back)
			if !reflect.DeepEqual(back, want[:i+1]) {
				t.Errorf("up to number %d: %v", i, back)
			}
		}
	})
}

func TestArchive_readsTheNotesOfAnEntryInTheirOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		e := ran(now, 0, 3, 1, 2, 4, 4, 4) // neither the order of their IDs, nor that of attempts
		for i, attempt := range []int{2, 3, 1} {
			e.Notes[3+i].Attempt = attempt
		}
		add(t, a, e)
		if got := all(t, a); !reflect.DeepEqual(got, []history.Entry{e}) {
			t.Errorf("the oldest first: %v", got)
		}
		must(t, a.HistoryBefore(t.Context(), "", "", func(got history.Entry) bool {
			if !reflect.DeepEqual(got, e) {
				t.Errorf("the newest first: %v", got)
			}
			return true
		}))
		got, err := a.Runs(t.Context(), e.Notes[3].TaskID)
		must(t, err)
		if !reflect.DeepEqual(got, e.Notes[3:]) {
			t.Errorf("runs of a task: %v", got)
		}
	})
}

// A failover took an entry back, and its ID was given again: the runs of a task at one place are in the order of their lines.
func TestArchive_readsTheRunsOfATaskAtOnePlaceByLine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		one, two := ran(now, 0, 1, 2), ran(now, 0, 2)
		one.Notes[1].Attempt = 2
		add(t, a, one)
		add(t, a, two)
		got, err := a.Runs(t.Context(), two.Notes[0].TaskID)
		must(t, err)
		if want := []history.Note{two.Notes[0], one.Notes[1]}; !reflect.DeepEqual(got, want) {
			t.Errorf("runs %v, want %v", got, want)
		}
	})
}
