package sqlarchive_test

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
)

func TestAdd_movesThePositionOnlyFromWhereItWas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		p, err := a.Position(t.Context())
		must(t, err)
		if p != (archive.Position{}) {
			t.Fatalf("an empty archive is at %+v", p)
		}
		first := batch(p, ran(now, 0, 1))
		first.Next.Runs, first.Next.Events, first.Next.Schedules, first.Next.Lost, first.Next.Since = "5-1", "6-2", 7, 8, now.Add(-time.Hour)
		must(t, a.Add(t.Context(), p, first))
		got, err := a.Position(t.Context())
		must(t, err)
		if got != first.Next {
			t.Fatalf("at %+v, want %+v", got, first.Next)
		}
		second := batch(p, ran(now, 1, 2))
		if err := a.Add(t.Context(), p, second); !errors.Is(err, archive.ErrMoved) || archive.Retryable(err) {
			t.Errorf("from a position of the past: %v", err)
		}
		if list := all(t, a); len(list) != 1 {
			t.Errorf("%d entries after a refused batch", len(list))
		}
		for i, change := range []func(*archive.Position){
			func(p *archive.Position) { p.History = "9-9" }, func(p *archive.Position) { p.Runs = "9-9" }, func(p *archive.Position) { p.Events = "9-9" },
			func(p *archive.Position) { p.Schedules++ }, func(p *archive.Position) { p.Read++ }, func(p *archive.Position) { p.Lost++ },
		} {
			other := first.Next
			change(&other)
			if err := a.Add(t.Context(), other, batch(other, ran(now, 1, 2))); !errors.Is(err, archive.ErrMoved) {
				t.Errorf("from a position whose part %d never was: %v", i, err)
			}
		}
		still := archive.Batch{Entries: second.Entries, Next: got}
		if err := a.Add(t.Context(), got, still); err == nil {
			t.Error("a batch that moves nothing was added")
		}
		must(t, a.Add(t.Context(), got, batch(got, ran(now, 1, 2))))
	})
}

// Instances that all believe to lead archive the same history, and each entry is there once.
func TestAdd_ofTwoAtOnceArchivesEachBatchOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		const writers, batches, each = 4, 30, 20
		var moved, lost atomic.Int64
		var group sync.WaitGroup
		for range writers {
			a := open(t, url)
			group.Go(func() {
				for {
					was, err := a.Position(context.Background())
					if err != nil || was.Read == batches*each {
						if err != nil {
							t.Error(err)
						}
						return
					}
					var entries []history.Entry
					for i := range each {
						entries = append(entries, ran(now, int(was.Read)+i, int(was.Read)+i))
					}
					switch err := a.Add(context.Background(), was, batch(was, entries...)); {
					case err == nil:
						moved.Add(1)
					case errors.Is(err, archive.ErrMoved):
						lost.Add(1)
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		if moved.Load() != batches {
			t.Errorf("%d batches were added, want %d", moved.Load(), batches)
		}
		if n := number(t, raw(t, url), "select count(*) from onbeat_runs"); n != batches*each {
			t.Errorf("%d rows, want %d", n, batches*each)
		}
		t.Logf("%d batches came second", lost.Load())
	})
}

// Redis lost the first note of a run in a failover, and was told again.
func TestAdd_ofARunThatWasNotedTwiceIsOneRow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		first := ran(now, 0, 1)
		again := ran(now.Add(2*time.Second), 0, 1)
		again.Notes[0].Claimed = first.Notes[0].Claimed
		retried := ran(now.Add(3*time.Second), 0, 1)
		add(t, a, first)
		add(t, a, again)
		add(t, a, retried) // was claimed at another time: another run
		notes, err := a.Runs(t.Context(), first.Notes[0].TaskID)
		must(t, err)
		if len(notes) != 2 || !notes[0].At.Equal(first.At) || !notes[1].At.Equal(retried.At) {
			t.Errorf("runs %+v", notes)
		}
	})
}

// No text and no time that another program wrote into Redis may stop the archive for ever.
func TestAdd_takesAnyTextAndAnyTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		var many strings.Builder
		for range 400 {
			many.WriteString("ä" + rand.Text()) // PostgreSQL cannot compress it to fit an index
		}
		long := many.String()
		bad := history.Note{
			Schedule: "s\x00\xff", Maker: "s\x00\xff", Slot: time.UnixMilli(0), TaskID: "a\x00b\xffc" + long, Word: history.Word("\xfe" + long), Attempt: 1 << 40,
			Claimed: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC), Took: 1<<63 - 1, Error: "\x00\xff", Output: strings.Repeat("\x00", 1<<20),
			Type: "\xff", Queue: "\x00", Due: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), Why: "\xff", Instance: "\x00", Release: "\xff", Gen: -1,
		}
		ranges := history.Note{Schedule: "\x00" + long, From: time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC), Word: "\x00", Count: -1, Why: long}
		was := archive.Position{}
		for _, id := range []string{"", "-", "x-y", "0-0", "0-1", "99999999999999999999999-99999999999999999999999", "253402300799999-0", "-5--7", idOf(now, 1)} {
			next := was
			next.History, next.Read = "\x00\xff"+id, was.Read+1
			must(t, a.Add(t.Context(), was, archive.Batch{
				Entries:   []history.Entry{{ID: id, Notes: []history.Note{bad, ranges}}},
				Events:    []archive.Event{{ID: id, Kind: "\x00\xff" + long, Fields: map[string]string{"\x00": "\x00\xff"}}},
				Revisions: []archive.Revision{{Schedule: "\x00" + long, Number: was.Read, Definition: "\x00" + long, Who: "\xff"}},
				Losses:    []archive.Loss{{}},
				Next:      next,
			}))
			var err error
			was, err = a.Position(t.Context())
			must(t, err)
		}
		if n := number(t, raw(t, url), "select count(*) from onbeat_runs"); n < 3 {
			t.Errorf("%d rows", n)
		}
		notes, err := a.Runs(t.Context(), bad.TaskID)
		must(t, err)
		if len(notes) < 3 || notes[0].Error != "\uFFFD\uFFFD" {
			t.Errorf("%d runs are found by their ID", len(notes))
		}
		if !strings.HasPrefix(notes[0].TaskID, "a\uFFFDb\uFFFDcä") {
			t.Errorf("the ID is %.20q", notes[0].TaskID)
		}
		if n := len(notes[0].Output); n > 1<<20+len("…") {
			t.Errorf("an output of %d bytes was archived", n)
		}
		if list := all(t, a); len(list) == 0 {
			t.Error("the history cannot be read")
		}
		_, err = a.Events(t.Context(), time.Time{}, time.Time{}, 1000)
		must(t, err)
	})
}

func TestAdd_keepsNamesOfTheLongestApart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url, func(o *opening) { o.namespace = strings.Repeat("n", 128) })
		id := strings.Repeat("x", 255) // a task's ID has 256 bytes at most
		one, two := ran(now, 0, 1), ran(now, 1, 1)
		one.Notes[0].TaskID, two.Notes[0].TaskID = id+"1", id+"2"
		add(t, a, one, two)
		for _, e := range []history.Entry{one, two} {
			notes, err := a.Runs(t.Context(), e.Notes[0].TaskID)
			must(t, err)
			if len(notes) != 1 || !reflect.DeepEqual(notes[0], e.Notes[0]) {
				t.Errorf("runs %+v, want %+v", notes, e.Notes[0])
			}
		}
	})
}

// A batch is larger than what one statement takes.
func TestAdd_ofALargeBatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		const rows = 5500
		a := open(t, url)
		var entries []history.Entry
		for i := range rows {
			e := ran(now, i, i)
			if i%100 == 0 {
				e.Notes[0].Output = strings.Repeat("o", 256<<10)
			}
			entries = append(entries, e)
		}
		add(t, a, entries...)
		if n := number(t, raw(t, url), "select count(*) from onbeat_runs"); n != rows {
			t.Errorf("%d rows", n)
		}
		i := 0
		must(t, a.History(t.Context(), time.Time{}, func(e history.Entry) error {
			if !reflect.DeepEqual(e, entries[i]) {
				t.Fatalf("entry %d is %.300v", i, e)
			}
			i++
			return nil
		}))
		if i != len(entries) {
			t.Errorf("%d entries", i)
		}
	})
}

func TestArchive_keepsNamespacesApart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a, b := open(t, url), open(t, url, func(o *opening) { o.namespace = "other" })
		add(t, a, ran(now, 0, 1))
		if list := all(t, b); len(list) != 0 {
			t.Errorf("%d entries of another namespace", len(list))
		}
		add(t, b, ran(now, 0, 1))
		if list := all(t, a); len(list) != 1 {
			t.Errorf("%d entries", len(list))
		}
	})
}
