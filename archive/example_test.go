package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
)

// A source opens an archive when it is first used.
func ExampleSource() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	source, err := archive.NewSource(sqlarchive.Config{URL: "sqlite://" + filepath.Join(dir, "archive.db")}, "demo", zerolog.Nop())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()

	a, err := source.Archive(ctx)
	if err != nil {
		fmt.Println(err) // such as archive.ErrUnavailable; the next call tries again
		return
	}
	entry := history.ParseEntry("1700000000345-0", map[string]any{"runs": "nightly@1700000000000 done 1 1700000000012", "more": "333"})
	fmt.Println(a.Add(ctx, archive.Position{}, archive.Batch{Entries: []history.Entry{entry}, Next: archive.Position{History: entry.ID}}))
	_ = a.HistoryBefore(ctx, "", "nightly", func(e history.Entry) bool {
		fmt.Println(e.Notes[0].Schedule, e.Notes[0].Word, e.Notes[0].Took)
		return true
	})
	// Output:
	// <nil>
	// nightly done 333ms
}
