package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// How long the doctor waits for the archive, how old the last entry may be that waits in Redis, of which time losses are told, and
// for how long a run that was noted shows that there is an archive.
const (
	archiveTime = 10 * time.Second
	archiveLate = time.Minute
	lossesOf    = 7 * 24 * time.Hour
	notedLately = time.Hour
)

// archived checks that the archive answers, that an instance archives, and that nothing was lost.
func (d *doctor) archived(ctx context.Context) {
	if d.archive == nil {
		d.unnamedArchive(ctx)
		return
	}
	ctx, done := context.WithTimeout(ctx, archiveTime)
	defer done()
	a, err := d.archive.Archive(ctx)
	since, _, _ := d.q.ArchivedSince(ctx) // a Redis that does not answer is reported elsewhere
	if errors.Is(err, archive.ErrTables) && !since.IsZero() {
		d.fail("archive", "the instance that leads makes the tables again, and archives what Redis has: see its log if it does not", "what was archived since %s is gone: %v",
			since.UTC().Format(time.RFC3339), err)
		return
	}
	if errors.Is(err, archive.ErrTables) { // the source leaves them as they are
		d.warn("archive", "start an instance of this release with that archive in its config: doctor changes nothing", "%v", err)
		return
	}
	if err != nil {
		d.fail("archive", "is the database there, and may the user make tables in it? Redis keeps what waits up to archive.buffer", "%v", err)
		return
	}
	at, err := a.Position(ctx)
	if err != nil {
		d.fail("archive", "is the database there? Redis keeps what waits up to archive.buffer", "%v", err)
		return
	}
	t, err := d.q.HistoryTail(ctx, at.History, 1)
	if err != nil {
		d.fail("archive", "", "%v", err)
		return
	}
	waits := time.Duration(0)
	if len(t.Items) > 0 {
		if now, err := d.q.Now(ctx); err == nil {
			waits = now.Sub(t.Items[0].At)
		}
	}
	switch losses, err := a.Lost(ctx, time.Now().Add(-lossesOf)); {
	case err != nil:
		d.fail("archive", "", "%v", err)
	case at.History == "" && !since.IsZero():
		d.fail("archive", "the instance that leads archives what Redis has: see its log if it does not; is this the archive of its config?",
			"what was archived since %s is gone: the database has nothing of this namespace", since.UTC().Format(time.RFC3339))
	case waits > archiveLate && at.History == "":
		d.warn("archive", "name the archive in the config of the instances: only the leader archives", "nothing is archived yet")
	case waits > archiveLate:
		d.warn("archive", "see the log of the leader; is the archive in its config?", "the history of the last %s waits", wording.Span(waits))
	case len(losses) > 0:
		last := losses[len(losses)-1]
		d.warn("archive", "raise archive.buffer, or keep the database up; audits call slots of a lost part of the history unknown",
			"entries were lost %d times within %s, last of the %s, between %s and %s", len(losses), wording.Span(lossesOf),
			last.Stream, last.From.UTC().Format(time.RFC3339), last.To.UTC().Format(time.RFC3339))
	default:
		d.archiveOK(ctx, a, at)
	}
}

// unnamedArchive warns if instances note runs for an archive that this config does not name: an instance with this config would cut
// the history to keep.history, whether the history is archived or not.
func (d *doctor) unnamedArchive(ctx context.Context) {
	t, err := d.q.RunsTail(ctx, "", 0)
	if err != nil || t.Stream.Length == 0 {
		return // a Redis that does not answer is reported elsewhere
	}
	if now, err := d.q.Now(ctx); err == nil && now.Sub(history.At(t.Stream.Last)) < notedLately {
		d.warn("archive", "name it in every config of the namespace; if it was taken away, that passes within an hour",
			"instances note runs for an archive, and this config names none: an instance with it keeps less than what waits")
	}
}

// archiveOK says from when on the archive has everything, and what this user lacks that only costs memory.
func (d *doctor) archiveOK(ctx context.Context, a archive.Archive, at archive.Position) {
	lacks, none := "", d.q.Keys().Unique("\x00")
	if store.LacksRight(store.Classify(d.cfg.Redis.Do(ctx, "XTRIM", none, "MAXLEN", "0").Err())) {
		lacks = "; without +xtrim Redis keeps what is archived too, and more than archive.buffer"
	}
	if store.LacksRight(store.Classify(d.cfg.Redis.Do(ctx, "MEMORY", "USAGE", none).Err())) {
		lacks += "; without +memory|usage an entry counts 512 bytes of archive.buffer"
	}
	if at.History == "" {
		d.ok("archive", "empty, and nothing waits%s", lacks)
		return
	}
	since, err := a.Since(ctx)
	switch {
	case err != nil:
		d.fail("archive", "", "%v", err)
	case since.IsZero():
		d.ok("archive", "all that ever was, up to %s%s", history.At(at.History).Format(time.RFC3339), lacks)
	default:
		d.ok("archive", "from %s up to %s%s", since.UTC().Format(time.RFC3339), history.At(at.History).Format(time.RFC3339), lacks)
	}
}
