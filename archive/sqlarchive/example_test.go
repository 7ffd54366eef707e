package sqlarchive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
)

// A program that follows a history reads the position, adds the entries after it, and moves the position.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	a, err := sqlarchive.Config{URL: "sqlite://" + filepath.Join(dir, "archive.db")}.Open(ctx, "demo", zerolog.Nop())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()

	entry := history.ParseEntry("1700000000345-0", map[string]any{
		"runs": "nightly@1700000000000 done 1 1700000000012", "more": "333", "instance": "i1", "release": "v1",
	})
	was, _ := a.Position(ctx)
	next := archive.Position{History: entry.ID, Read: was.Read + 1, At: time.UnixMilli(1700000000400)}
	fmt.Println(a.Add(ctx, was, archive.Batch{Entries: []history.Entry{entry}, Next: next}))
	fmt.Println(a.Add(ctx, was, archive.Batch{Entries: []history.Entry{entry}, Next: next})) // by another instance

	notes, _ := a.Runs(ctx, "nightly@1700000000000")
	for _, n := range notes {
		fmt.Println(n.Schedule, n.Word, n.Took, n.Release)
	}
	// Output:
	// <nil>
	// archive 1 entries: the position in the archive has moved
	// nightly done 333ms v1
}
