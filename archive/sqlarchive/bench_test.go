package sqlarchive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
)

// BenchmarkAdd adds batches of 5,000 runs. Each commit waits for the disk, as in production.
func BenchmarkAdd(b *testing.B) {
	for _, kind := range []string{"tasks", "slots"} {
		b.Run("postgres/"+kind, func(b *testing.B) {
			benchmarkAdd(b, testpostgres.Private(b).Database(), kind == "slots")
		})
		b.Run("sqlite/"+kind, func(b *testing.B) { benchmarkAdd(b, fileIn(b.TempDir()), kind == "slots") })
	}
}

func benchmarkAdd(b *testing.B, url string, slots bool) {
	const runs, entries = 5000, 50
	a := open(b, url)
	was, n := archive.Position{}, 0
	var batches []archive.Batch
	for range min(b.N, 20) {
		var list []history.Entry
		for range entries {
			at := now.Add(time.Duration(n) * 100 * time.Microsecond)
			e := ran(at, n)
			for range runs / entries {
				e.Notes = append(e.Notes, ran(at, n, n).Notes...)
				if note := &e.Notes[len(e.Notes)-1]; !slots {
					note.TaskID, note.Schedule, note.Maker, note.Slot = uuid.Must(uuid.NewV7()).String(), "", "", time.Time{}
				}
				n++
			}
			list = append(list, e)
		}
		batches = append(batches, archive.Batch{Entries: list})
	}
	b.ResetTimer()
	for i := range b.N {
		next := batches[i%len(batches)]
		if i >= len(batches) { // the same runs, claimed later
			for _, e := range next.Entries {
				for j := range e.Notes {
					e.Notes[j].Claimed = e.Notes[j].Claimed.Add(time.Millisecond)
				}
			}
		}
		next.Next = archive.Position{History: fmt.Sprint(i), Read: was.Read + entries}
		must(b, a.Add(b.Context(), was, next))
		was = next.Next
	}
	b.ReportMetric(float64(runs*b.N)/b.Elapsed().Seconds(), "rows/s")
}
