package archiver

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// Observer is told how archiving goes, on the instance that archives. Its methods must not block.
type Observer interface {
	// ArchiveBehind is told how many entries wait in Redis to be archived, as far as Redis tells. A negative number says that
	// this instance no longer archives.
	ArchiveBehind(entries int64)
	// ArchiveLost is told of entries that Redis dropped before they were archived. If it does not tell how many, it is one.
	ArchiveLost(entries int64)
}

// Config tunes an Archiver.
type Config struct {
	// Observer is told how it goes. Default: nobody is.
	Observer Observer
	// Needed returns the ID of the first run of a task of no schedule that something else still reads: Redis keeps it, and all
	// after it, though they are archived. It must not block. Default: nothing reads them.
	Needed func() string
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
	// Every is how often the archiver looks for what is new. Default 1s.
	Every time.Duration
}

// Archiver moves what happens in a namespace from Redis into an archive, while its instance leads: the history, the runs of
// other tasks, events, and what schedules said. It goes on from the position that the archive keeps, so each entry is archived
// once, whichever instance does it. While the database is away, Redis keeps the entries, up to [queue.Caps].Buffer.
type Archiver struct {
	q      *queue.Queue
	source *archive.Source
	cfg    Config
	log    zerolog.Logger

	history stream[history.Entry]
	runs    stream[history.Entry]
	events  stream[queue.Event]
}

// New returns an archiver that archives what the queue's namespace does.
func New(q *queue.Queue, source *archive.Source, cfg Config) *Archiver {
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	entry := func(e *history.Entry) string { return e.ID }
	return &Archiver{
		q: q, source: source, cfg: cfg, log: cfg.Log,
		history: stream[history.Entry]{q.HistoryTail, q.HistoryUpTo, entry},
		runs:    stream[history.Entry]{q.RunsTail, q.RunsUpTo, entry},
		events:  stream[queue.Event]{q.EventTail, q.EventsUpTo, func(e *queue.Event) string { return e.ID }},
	}
}

// Run archives in every term of the session. It returns when the session drains or ends.
func (a *Archiver) Run(session *instance.Session) error {
	session.Attend(func(ctx context.Context) { a.follow(ctx, who{session.ID, session.Release}) })
	return nil
}

// who is the instance that archives.
type who struct{ instance, release string }

// longestPause is the longest wait between two tries while Redis or the database is away.
const longestPause = 30 * time.Second

// follow archives until ctx ends.
func (a *Archiver) follow(ctx context.Context, by who) {
	t := &term{Archiver: a, by: by, page: firstPage, trims: true}
	defer t.behind(-1)
	var beside sync.WaitGroup
	beside.Go(func() { t.keepTidy(ctx) })
	beside.Go(func() { t.keepToBuffer(ctx) })
	defer beside.Wait()
	failures := 0
	for {
		more, err := t.step(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := a.cfg.Every
		switch {
		case err != nil:
			if failures++; failures == 1 || failures%60 == 0 {
				a.log.Warn().Err(err).Int("tries", failures).Msg("cannot archive: trying again")
			}
			wait = pauseAfter(failures)
		case failures > 0:
			a.log.Info().Int("tries", failures).Msg("archiving goes on")
			failures = 0
		}
		if more && err == nil {
			continue
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// pauseAfter grows with the failures in a row, and differs between instances.
func pauseAfter(failures int) time.Duration {
	d := min(longestPause, time.Second<<min(failures-1, 10))
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *Archiver) needed() string {
	if a.cfg.Needed == nil {
		return ""
	}
	return a.cfg.Needed()
}

func (a *Archiver) behind(entries int64) {
	if a.cfg.Observer != nil {
		a.cfg.Observer.ArchiveBehind(entries)
	}
}

// report tells of what was lost: the log, an event, and the observer.
func (a *Archiver) report(ctx context.Context, by who, f *found) {
	for _, l := range f.losses() {
		a.log.Error().Str("stream", l.Stream).Time("from", l.From).Time("to", l.To).Int64("entries", l.Entries).
			Msg("the archive lost entries")
		if a.cfg.Observer != nil {
			a.cfg.Observer.ArchiveLost(max(l.Entries, 1))
		}
		err := a.q.Tell(ctx, "archive lost", "instance", by.instance, "release", by.release, "stream", l.Stream,
			"entries", entriesText(l.Entries), "from", ms(l.From), "to", ms(l.To))
		if err != nil && ctx.Err() == nil {
			a.log.Debug().Err(err).Msg("could not record that as an event")
		}
	}
}
