package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// ByArchive is the actor of changes that restore what only the archive knew.
const ByArchive = "onbeat.archive"

var errOtherName = errors.New("its definition has another name")

// regainPage is how many schedules the archive is asked for at once. notesRead is how many notes of a schedule are read to see how far it
// was, and countedNotes of one whose runs are limited: the rest is reckoned by its grid.
const (
	regainPage   = 200
	notesRead    = 500
	countedNotes = 100_000
)

// regainDeclared restores, before anything is declared, the declared schedules that only the archive knows because Redis came back
// empty: else they would begin anew, on another grid, with a pause ended and their runs counted from zero. The beat waits for it, as
// long as the archive answers. Schedules that are not restored by then begin anew.
func (t *term) regainDeclared(ctx context.Context) error {
	if t.cfg.Archive == nil || t.cfg.Declared == nil || len(t.before.entries) > 0 {
		return nil
	}
	calls := eachCall{ctx, callLimit(t.session)}
	state, err := t.q.Regained(calls)
	if err != nil || state == queue.FromArchive {
		return err
	}
	if err := t.q.NoteRegained(calls, queue.Regaining); err != nil && !errors.Is(err, task.ErrFull) { // only work behind the gate makes room
		return err
	}
	if loss, lost := t.session.Loss(); lost && loss.Kept.IsZero() { // an instance that led may be back, and remembers more than the archive has
		select {
		case <-time.After(t.session.Lease() / 2):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	asks, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := time.AfterFunc(callLimit(t.session), cancel)
	defer patience.Stop()
	restored, unread, err := t.regainFrom(asks, Declared, func() {
		t.progress.made()
		patience.Reset(callLimit(t.session))
	})
	t.tellRestored(restored)
	if err != nil && ctx.Err() == nil && !over(err) && !store.Retryable(err) {
		t.log.Error().Err(err).Msg("cannot ask the archive for the declared schedules: those that redis does not know begin anew")
		err = nil
	}
	if err != nil || len(unread) == 0 {
		return err
	}
	t.log.Error().Err(unread[0]).Int("schedules", len(unread)).Msg("cannot restore declared schedules that redis lost: they begin anew")
	if err := t.tellUnread(calls, unread); !errors.Is(err, task.ErrFull) {
		return err
	}
	return nil
}

func (t *term) tellRestored(schedules int) {
	if schedules > 0 {
		t.log.Warn().Int("schedules", schedules).Msg("restored from the archive the schedules that redis lost")
	}
}

// regain restores, beside the work of the term, the applied schedules that only the archive knows because Redis came back empty. It
// comes after the leader has restored what it remembers, and declared. It retries until that is done, however long the archive is away.
func (t *term) regain(ctx context.Context, bereft bool) {
	wait := time.Duration(0)
	if bereft { // an instance that led, and registers anew, remembers more than the archive has
		wait = 2 * t.session.Lease()
	}
	for tries := 0; ; tries++ {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		err := t.regainAll(ctx, bereft)
		if err == nil || ctx.Err() != nil {
			return
		}
		if tries == 0 {
			t.log.Warn().Err(err).Msg("cannot look for schedules that redis lost: trying again")
		}
		wait = min(longestAgain, time.Second<<min(tries, 10))
	}
}

// regainAll does it once for each loss, because the note that it is done is lost with all else. A leader that dies in between leaves
// whole schedules, and no note: the next one goes on.
func (t *term) regainAll(ctx context.Context, bereft bool) error {
	calls := eachCall{ctx, callLimit(t.session)}
	state, err := t.q.Regained(calls)
	if err != nil || state == queue.FromArchive {
		return err
	}
	if t.cfg.Archive == nil {
		if !bereft || state != "" {
			return nil
		}
		if err := t.q.Tell(calls, "schedules lost", "instance", t.session.ID); err != nil {
			return err
		}
		return t.q.NoteRegained(calls, queue.FromNothing)
	}
	restored, unread, err := t.regainFrom(ctx, Applied, func() {})
	if err != nil {
		return err
	}
	t.tellRestored(restored)
	if err := t.regainHealths(ctx); err != nil {
		return err
	}
	if len(unread) == 0 {
		return t.q.NoteRegained(calls, queue.FromArchive)
	}
	t.log.Error().Err(unread[0]).Int("schedules", len(unread)).Msg("cannot restore schedules that redis lost: a newer release may")
	return t.tellUnread(calls, unread)
}

// tellUnread tells that schedules could not be restored. The log says that too, and how it goes on with them.
func (t *term) tellUnread(ctx context.Context, unread []error) error {
	return t.q.Tell(ctx, "schedules lost", "instance", t.session.ID, "schedules", strconv.Itoa(len(unread)), "error", unread[0].Error())
}

// regainFrom restores the schedules of an origin that the archive has, and of which Redis knows nothing. It calls step when the archive
// is open, and after each answer. It also returns the errors of those that cannot be read here. Their origin is not known: of Declared are
// those that this release declares.
func (t *term) regainFrom(ctx context.Context, origin string, step func()) (restored int, unread []error, err error) {
	a, err := t.cfg.Archive.Archive(ctx)
	if err != nil {
		return 0, nil, err
	}
	step()
	declares := map[string]bool{}
	if origin == Declared {
		for _, s := range t.cfg.Declared() {
			declares[s.Name] = true
		}
	}
	calls := eachCall{ctx, callLimit(t.session)}
	err = eachUnknown(ctx, calls, t.q, a, func(page []archive.Schedule) error {
		step()
		var changes []queue.Change
		for i := range page {
			e, err := archivedEntry(&page[i], t.q.Seal())
			if err != nil {
				if origin == Applied || declares[page[i].Name] {
					unread = append(unread, err)
				}
				continue
			}
			if e == nil || e.head.Origin != origin {
				continue
			}
			if err := e.catchUpWith(ctx, a); err != nil {
				return err
			}
			step()
			c, err := e.restored(e.last.Slot)
			if err != nil {
				return err
			}
			c.Expect, c.Definition = queue.Never, page[i].Definition // as it was: sealed, if it was
			changes = append(changes, *c)
		}
		_, moved, err := t.q.Change(queue.By(calls, ByArchive), t.term.Epoch, changes)
		restored += len(changes) - len(moved)
		return err
	})
	return restored, unread, err
}

// eachUnknown calls fn with the schedules of the archive of which Redis knows nothing, a page at a time. The context of calls is for Redis.
func eachUnknown(ctx, calls context.Context, q *queue.Queue, a archive.Archive, fn func(page []archive.Schedule) error) error {
	for after := ""; ; {
		page, err := a.Schedules(ctx, after, regainPage)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Name
		names := make([]string, len(page))
		for i := range page {
			names[i] = page[i].Name
		}
		known, err := q.ChangedAt(calls, names)
		if err != nil {
			return err
		}
		var unknown []archive.Schedule
		for i := range page {
			if known[i] == 0 {
				unknown = append(unknown, page[i])
			}
		}
		if err := fn(unknown); err != nil {
			return err
		}
	}
}

// archivedEntry makes the entry of an archived schedule, as it was after its last change. It is nil for one that was deleted or retired.
func archivedEntry(x *archive.Schedule, keys *seal.Keys) (*entry, error) {
	e, err := newEntry(queue.Stored{Name: x.Name, Definition: x.Definition, Last: x.Last, Pause: pauseOf(x), Seal: keys})
	if e == nil || err != nil {
		return nil, err
	}
	err = errors.Join(e.s.Validate(task.Limits{Payload: len(x.Definition) + 1}), checkType(e.s.Task)) // others may write to the archive
	if err != nil || e.s.Name != x.Name {
		return nil, fmt.Errorf("schedule %q of the archive: %w", x.Name, cmp.Or(err, errOtherName))
	}
	return e, nil
}

// ToRegain returns, by name, the schedules that only the archive knows because Redis came back empty, and no leader has restored them yet:
// how they were when the archive last heard of them. It returns none without an archive. Besides them it returns a joined error for those
// that it cannot read.
func (s *Schedules) ToRegain(ctx context.Context) (list []Status, err error) {
	if !s.past.Archived() {
		return nil, nil
	}
	if state, err := s.q.Regained(ctx); err != nil || state == queue.FromArchive {
		return nil, err
	}
	now, err := s.q.Now(ctx)
	if err != nil {
		return nil, err
	}
	a, err := s.past.Archive(ctx)
	if err != nil {
		return nil, err
	}
	var unread []error
	err = eachUnknown(ctx, ctx, s.q, a, func(page []archive.Schedule) error {
		for i := range page {
			e, err := archivedEntry(&page[i], s.q.Seal())
			if e != nil && err == nil {
				if err = e.catchUpWith(ctx, a); err == nil {
					list = append(list, e.status(now))
				}
			}
			if err != nil {
				unread = append(unread, err)
			}
		}
		return nil
	})
	return list, errors.Join(append(unread, err)...)
}

// pauseOf is what the archive has of a schedule's pause; "" if no caller could have paused it so.
func pauseOf(s *archive.Schedule) string {
	p, ok := queue.ParsePause(s.Pause)
	if !ok || errors.Join(queue.CheckReason(p.Reason), queue.CheckReason(p.By)) != nil {
		return ""
	}
	return s.Pause
}

// catchUpWith moves an entry on from its last change to the last slot of which the archive knows the end: no slot up to there runs
// again. A slot whose last attempt failed, or was lost, has no end yet.
func (e *entry) catchUpWith(ctx context.Context, a archive.Archive) error {
	from := minTime(e.last.Slot, store.FromMs(e.last.Rev)) // those after the change were pushed ahead, and are perhaps lost
	e.last.Runs = max(0, e.last.Runs-e.grid.Count(from, e.last.Slot))
	most, read := notesRead, 0
	if e.s.MaxRuns > 0 {
		most = countedNotes
	}
	last, first, ran := from, time.Time{}, map[time.Time]bool{}
	err := a.HistoryBefore(ctx, "", e.s.Name, func(x archive.Entry) bool {
		for i := range x.Notes {
			n := &x.Notes[i]
			read++
			switch {
			case n.Schedule != e.s.Name || n.Word == history.Was:
			case n.TaskID == "":
				last = maxTime(last, n.To)
			case n.Word == history.Failed || n.Word == history.Lost || n.Word == history.Returned || !n.Slot.After(from):
			default:
				last = maxTime(last, n.Slot)
				if first.IsZero() || n.Slot.Before(first) {
					first = n.Slot
				}
				ran[n.Slot] = n.Word != history.Missed
			}
		}
		return read < most && x.At.After(from)
	})
	for _, counts := range ran {
		if counts {
			e.last.Runs++
		}
	}
	if read >= most && !first.IsZero() {
		e.last.Runs += e.grid.Count(from, before(first))
	}
	e.last.Slot = last
	return err
}
