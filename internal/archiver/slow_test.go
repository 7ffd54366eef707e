package archiver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// slow opens an archive whose database has no time for more than so many entries in one transaction.
type slow struct {
	archive.Opener
	most int
}

func (s slow) Open(ctx context.Context, namespace string, log zerolog.Logger) (archive.Archive, error) {
	a, err := s.Opener.Open(ctx, namespace, log)
	return slowArchive{a, s.most}, err
}

type slowArchive struct {
	archive.Archive
	most int
}

func (a slowArchive) Add(ctx context.Context, was archive.Position, b archive.Batch) error {
	if n := len(b.Entries); n > a.most {
		return fmt.Errorf("%w: %d entries take too long", archive.ErrUnavailable, n)
	}
	return a.Archive.Add(ctx, was, b)
}

func TestArchiver_makesSmallerBatchesForADatabaseThatIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a, want := w.archive(), w.note(60)
	w.to = slow{w.to, 15}
	w.follow("a")
	w.eventually(a, want)
}
