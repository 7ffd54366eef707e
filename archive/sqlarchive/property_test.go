package sqlarchive_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
)

// model is what an archive should hold: the entries of both streams in the order in which they were archived.
type model struct {
	entries []history.Entry
	keys    map[string]bool
}

// add takes in a batch, without the runs that are there already.
func (m *model) add(entries []history.Entry) {
	for _, e := range entries {
		kept := history.Entry{ID: e.ID, At: e.At}
		for _, n := range e.Notes {
			begun := e.At
			if early := e.At.Sub(n.Claimed); !n.Claimed.IsZero() && early <= 72*time.Hour && early >= -24*time.Hour {
				begun = n.Claimed
			}
			key := fmt.Sprint(n.TaskID, begun.UnixMilli(), n.Word, n.Attempt)
			if n.TaskID != "" && m.keys[key] {
				continue
			}
			m.keys[key] = true
			kept.Notes = append(kept.Notes, n)
		}
		m.entries = append(m.entries, kept)
	}
}

// history is the entries since a moment, with the notes of a schedule ("": any), the oldest first.
func (m *model) history(since time.Time, schedule string) []history.Entry {
	var list []history.Entry
	for _, e := range m.entries {
		var notes []history.Note
		for _, n := range e.Notes {
			maker := n.Maker
			if n.TaskID == "" {
				maker = n.Schedule
			}
			if maker != "" && (schedule == "" || schedule == maker) {
				notes = append(notes, n)
			}
		}
		if len(notes) > 0 && !e.At.Before(since) {
			list = append(list, history.Entry{ID: e.ID, At: e.At, Notes: notes})
		}
	}
	return list
}

func (m *model) runs(id string) []history.Note {
	var list []history.Note
	for _, e := range m.entries {
		for _, n := range e.Notes {
			if n.TaskID == id {
				list = append(list, n)
			}
		}
	}
	return list
}

// Entries are read as they were archived, from either end, of all schedules or of one.
func TestArchive_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			n++
			a, err := sqlarchive.Config{URL: url}.Open(t.Context(), fmt.Sprint("n", n), zerolog.Nop())
			must(t, err)
			defer a.Close()
			m := model{keys: map[string]bool{}}
			at, was := now.Add(-30*24*time.Hour), archive.Position{}
			for range rapid.IntRange(1, 5).Draw(r, "batches") {
				var entries []history.Entry
				for range rapid.IntRange(1, 30).Draw(r, "entries") {
					at = at.Add(time.Duration(rapid.IntRange(1, 100_000_000).Draw(r, "ms")) * time.Millisecond)
					entries = append(entries, drawEntry(r, at))
				}
				b := batch(was, entries...)
				must(t, a.Add(t.Context(), was, b))
				was = b.Next
				m.add(entries)
			}
			check(t, r, a, &m)
		})
	})
}

func check(t *testing.T, r *rapid.T, a archive.Archive, m *model) {
	t.Helper()
	since := m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(r, "since")].At
	for _, from := range []time.Time{{}, since} {
		var got []history.Entry
		must(t, a.History(t.Context(), from, func(e history.Entry) error {
			got = append(got, e)
			return nil
		}))
		same(r, "history", got, m.history(from, ""))
	}
	for _, schedule := range []string{"", "a", "b"} {
		before := m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(r, "before")]
		for _, id := range []string{"", before.ID} {
			want := m.history(time.Time{}, schedule)
			if id != "" {
				want = slices.DeleteFunc(want, func(e history.Entry) bool { return !e.At.Before(before.At) })
			}
			slices.Reverse(want)
			limit := rapid.IntRange(1, 20).Draw(r, "limit")
			var got []history.Entry
			must(t, a.HistoryBefore(t.Context(), id, schedule, func(e history.Entry) bool {
				got = append(got, e)
				return len(got) < limit
			}))
			same(r, "history of "+schedule+" before "+id, got, want[:min(limit, len(want))])
		}
	}
	for _, id := range []string{"a@1", "b@2", "task 1"} {
		got, err := a.Runs(t.Context(), id)
		must(t, err)
		same(r, "runs of "+id, got, m.runs(id))
	}
}

func same[T any](r *rapid.T, what string, got, want []T) {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			r.Fatalf("%s: number %d is\n%+v, want\n%+v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		r.Fatalf("%s: %d, want %d", what, len(got), len(want))
	}
}

// drawEntry draws an entry of one of the two streams.
func drawEntry(r *rapid.T, at time.Time) history.Entry {
	e := history.Entry{ID: idOf(at, rapid.IntRange(0, 3).Draw(r, "seq")), At: at}
	who := history.Note{Gen: rapid.Int64Range(0, 5).Draw(r, "gen"), Instance: drawText(r), Release: drawText(r), At: at}
	draw := rapid.OneOf(rapid.Just(drawSlot), rapid.Just(drawRange))
	if rapid.Bool().Draw(r, "other") {
		draw = rapid.Just(drawTask)
	}
	for range rapid.IntRange(1, 4).Draw(r, "notes") {
		n := draw.Draw(r, "kind")(r, at)
		n.Gen, n.Instance, n.Release, n.At = who.Gen, who.Instance, who.Release, who.At
		e.Notes = append(e.Notes, n)
	}
	return e
}

func drawText(r *rapid.T) string {
	return rapid.StringMatching(`[ -~äß→\n\t]{0,12}`).Draw(r, "text")
}

func drawSlot(r *rapid.T, at time.Time) history.Note {
	n := drawTask(r, at)
	n.Maker = rapid.SampledFrom([]string{"a", "b"}).Draw(r, "maker")
	n.TaskID = n.Maker + rapid.SampledFrom([]string{"!uuid", "@1", "@2"}).Draw(r, "id")
	if n.TaskID[1] == '@' {
		n.Schedule, n.Slot = n.Maker, time.UnixMilli(int64(n.TaskID[2]-'0')).UTC()
	}
	return n
}

func drawTask(r *rapid.T, at time.Time) history.Note {
	n := history.Note{
		TaskID: rapid.SampledFrom([]string{"task 1", "a@1", "→"}).Draw(r, "task"), Word: rapid.SampledFrom(history.Words()).Draw(r, "word"),
		Attempt: rapid.IntRange(0, 3).Draw(r, "attempt"), Error: drawText(r), Type: drawText(r), Queue: drawText(r), Output: drawText(r), Why: drawText(r),
	}
	if rapid.Bool().Draw(r, "claimed") {
		n.Claimed = at.Add(-rapid.SampledFrom([]time.Duration{-48 * time.Hour, 0, time.Millisecond, time.Hour, 1000 * time.Hour}).Draw(r, "early"))
		n.Took = time.Duration(rapid.IntRange(0, 1000).Draw(r, "took")) * time.Millisecond
	}
	if rapid.Bool().Draw(r, "due") {
		n.Due = at.Add(-time.Minute)
	}
	return n
}

func drawRange(r *rapid.T, at time.Time) history.Note {
	return history.Note{
		Schedule: rapid.SampledFrom([]string{"a", "b"}).Draw(r, "schedule"), From: at.Add(-time.Hour), To: at, Count: rapid.Int64Range(0, 100).Draw(r, "count"),
		Word: rapid.SampledFrom(history.Words()).Draw(r, "word"), Why: drawText(r),
	}
}
