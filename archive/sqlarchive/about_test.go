package sqlarchive_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
)

func TestArchive_readsEventsRevisionsAndLosses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		b := batch(archive.Position{}, ran(now, 0, 1))
		for i := range 10 {
			at := now.Add(time.Duration(i) * time.Minute)
			b.Events = append(b.Events, archive.Event{
				ID: idOf(at, i), At: at, Kind: "joined", Fields: map[string]string{"n": fmt.Sprint(i), "say \"ä\"": "a\nb\\", "": ""},
			})
			r := archive.Revision{Schedule: "report", Number: int64(i + 1), At: at, What: "changed", Who: "ann", Definition: fmt.Sprintf(`{"every":"%ds"}`, i)}
			if i == 0 {
				r.At = time.Time{} // by a release that noted none
			}
			b.Revisions = append(b.Revisions, r)
			b.Losses = append(b.Losses, archive.Loss{From: at, To: at.Add(time.Second), Stream: "history", Entries: int64(i)})
		}
		must(t, a.Add(t.Context(), archive.Position{}, b))

		wantEvents := func(from, to time.Time, limit int, want []archive.Event) {
			t.Helper()
			got, err := a.Events(t.Context(), from, to, limit)
			must(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("events\n%v, want\n%v", got, want)
			}
		}
		wantEvents(time.Time{}, time.Time{}, 0, b.Events)
		wantEvents(time.Time{}, time.Time{}, 3, b.Events[7:])
		wantEvents(b.Events[2].At, b.Events[4].At, 0, b.Events[2:5])
		got, err := a.EventsAfter(t.Context(), b.Events[4].ID, 2)
		must(t, err)
		if !reflect.DeepEqual(got, b.Events[5:7]) {
			t.Errorf("events after one: %v", got)
		}

		list, err := a.Revisions(t.Context(), "report", 0, 0)
		must(t, err)
		if len(list) != 10 || list[0] != b.Revisions[9] || list[9] != b.Revisions[0] {
			t.Errorf("revisions %v", list)
		}
		list, err = a.Revisions(t.Context(), "report", 5, 2)
		must(t, err)
		if len(list) != 2 || list[0] != b.Revisions[3] || list[1] != b.Revisions[2] {
			t.Errorf("revisions before one: %v", list)
		}

		losses, err := a.Lost(t.Context(), now.Add(5*time.Minute))
		must(t, err)
		if !reflect.DeepEqual(losses, b.Losses[5:]) {
			t.Errorf("losses %v", losses)
		}
		if losses, err = a.Lost(t.Context(), time.Time{}); err != nil || len(losses) != 10 {
			t.Errorf("all losses: %v, %v", losses, err)
		}
	})
}

// The same events and revisions come again if a position was lost with a database that was restored.
func TestAdd_ofEventsAndRevisionsThatAreThereLeavesThemOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		was := archive.Position{}
		for range 2 {
			b := batch(was, ran(now, 0, 1))
			b.Events = []archive.Event{{ID: idOf(now, 0), Kind: "joined"}}
			b.Revisions = []archive.Revision{{Schedule: "s", Number: 1, Definition: strings.Repeat("d", 300<<10)}}
			must(t, a.Add(t.Context(), was, b))
			was = b.Next
		}
		db := raw(t, url)
		for _, table := range []string{"onbeat_runs", "onbeat_events", "onbeat_revisions"} {
			if n := number(t, db, "select count(*) from "+table); n != 1 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
	})
}
