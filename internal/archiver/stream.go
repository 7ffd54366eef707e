package archiver

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// stream is one stream of a namespace, as the archiver reads it.
type stream[T any] struct {
	tail func(ctx context.Context, after string, n int) (queue.Tail[T], error)
	upTo func(ctx context.Context, id string) (string, error)
	id   func(*T) string
}

// place is how far a stream is archived.
type place struct {
	id    string
	added int64 // how many entries Redis had added up to there, or before its first one without an id; 0 if that is not known
}

// part is what was read of a stream in one step.
type part[T any] struct {
	items []T
	next  place
	more  bool // the stream goes on
	fits  int  // how many entries of this size one reading should ask for
	back  bool // the stream has lost its end: next is a place before its new one
	loss  *archive.Loss
	was   queue.Stream
}

// begins notes a loss if the stream begins after since: from then on all of it was archived, and the entries between are gone. There is no
// loss if Redis has all that it ever added, or nothing was read, unless Redis lost entries before: older says so.
func (p *part[T]) begins(since time.Time, older bool, at func(*T) time.Time) {
	whole := p.was.Added > 0 && p.was.Added == p.was.Length
	if !older && (whole || len(p.items) == 0) {
		return
	}
	first := time.Now()
	if len(p.items) > 0 {
		first = at(&p.items[0])
	}
	if first.After(since) {
		p.loss = &archive.Loss{From: since, To: first}
	}
}

// drops notes a loss if nothing of a stream was archived yet, and it begins later than at a place. Since is when that was read.
func (p *part[T]) drops(at place, since time.Time, begins func(*T) time.Time) {
	if entries := p.was.Added - p.was.Length - at.added; at.id == "" && entries > 0 && len(p.items) > 0 {
		p.loss = &archive.Loss{From: since, To: begins(&p.items[0]), Entries: entries}
		if p.loss.To.Before(since) { // another clock
			p.loss.From = p.loss.To
		}
	}
}

// again is how far before its position the archiver reads anew when the stream has lost its end: entries that were added since
// may have IDs before the position, if the clock of the new primary is behind. An entry that is read twice is archived once.
const again = time.Minute

// read reads on from a place, at most n entries.
func (s *stream[T]) read(ctx context.Context, at place, n int) (part[T], error) {
	t, err := s.tail(ctx, at.id, n)
	if err != nil {
		return part[T]{}, err
	}
	p := part[T]{items: t.Items, next: at, more: t.More, fits: t.Fits, was: t.Stream}
	begins := at.id == ""
	if !t.There {
		older, found, err := s.back(ctx, at.id)
		if err != nil || found {
			next := place{id: older}
			if older == "" {
				next.added = max(t.Stream.Added-t.Stream.Length, 0) // those before the first are archived
			}
			return part[T]{next: next, more: true, back: true, was: t.Stream}, err
		}
		p.loss, begins = s.lossOf(at, &t), len(t.Items) > 0
	}
	if begins {
		p.next.added = max(t.Stream.Added-t.Stream.Length, 0)
	}
	if len(t.Items) > 0 {
		p.next.id = s.id(&t.Items[len(t.Items)-1])
		if p.next.added > 0 || begins && t.Stream.Added > 0 {
			p.next.added += int64(len(t.Items))
		}
	}
	if p.next.id == t.Stream.Last {
		p.next.added = t.Stream.Added
	}
	return p, nil
}

// back looks whether the stream has entries before a place whose own entry is gone. Then it was not cut at its beginning: a
// failover took its end, or something removed the entry. It returns an entry from some time before, or "" for the beginning.
func (s *stream[T]) back(ctx context.Context, id string) (older string, found bool, err error) {
	older, err = s.upTo(ctx, id)
	if err != nil || older == "" {
		return "", false, err
	}
	older, err = s.upTo(ctx, queue.PlaceBefore(id, again))
	return older, true, err
}

// lossOf returns what is missing between a place and what is there now. It is nil if nothing is there, or nothing is missing.
func (s *stream[T]) lossOf(at place, t *queue.Tail[T]) *archive.Loss {
	if len(t.Items) == 0 {
		return nil
	}
	l := &archive.Loss{From: history.At(at.id), To: history.At(s.id(&t.Items[0]))}
	if at.added > 0 && t.Stream.Added > 0 {
		l.Entries = t.Stream.Added - t.Stream.Length - at.added
		if l.Entries == 0 {
			return nil
		}
		l.Entries = max(l.Entries, 0) // Redis came back empty, and counts anew
	}
	return l
}

// left is how many entries are there behind a place, as far as Redis tells; all of them if it does not.
func left(at place, now queue.Stream) int64 {
	if at.added > 0 && now.Added > 0 {
		return max(now.Added-at.added, 0)
	}
	return now.Length
}
