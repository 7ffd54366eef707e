package archiver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// weighEvery is after how many looks for what is new the archiver looks how much memory it takes in Redis.
const weighEvery = 5

// buffer is what a term knows of the memory that Redis keeps for the archive.
type buffer struct {
	waits atomic.Int64 // entries, as the observer was told last

	// The problems that the log has told of, so that it tells of each once.
	full, assumed, refused bool
}

// keepToBuffer removes the oldest entries while Redis keeps more than [queue.Caps].Buffer says. It does so beside what the term
// archives, because entries pile up while that waits for a database.
func (t *term) keepToBuffer(ctx context.Context) {
	for pause(ctx, weighEvery*t.cfg.Every) {
		within, done := context.WithTimeout(ctx, readTime)
		before := t.waits.Load()
		_, left, err := t.q.TrimToBuffer(within)
		done()
		if ctx.Err() == nil {
			t.tell(min(before, t.waits.Load()), left, err)
		}
	}
}

// tell logs what changed. If more entries wait than there are, Redis has dropped some; they are counted once the archive says what
// it has, because its position is gone then.
func (t *term) tell(waits int64, left queue.Buffer, err error) {
	b := &t.buffer
	if errors.Is(err, task.ErrDenied) && !b.refused { // other errors keep the term from archiving too, and it tells of them
		b.refused = true
		t.log.Warn().Err(err).Msg("cannot trim entries that wait to be archived: redis keeps more than archive.buffer")
	}
	if left.Assumed != nil && !b.assumed {
		b.assumed = true
		t.log.Warn().Err(left.Assumed).Msg("cannot ask redis how large the history is: an entry counts 512 bytes of archive.buffer")
	}
	switch {
	case waits == 0:
		b.full = false
	case waits > left.Entries && err == nil && !b.full:
		b.full = true
		t.log.Error().Int64("waits", waits).Int64("kept", left.Entries).Int64("bytes", left.Bytes).
			Msg("archive.buffer is full: redis drops the oldest of what waits to be archived")
	}
}
