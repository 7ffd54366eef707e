package producer

import (
	"context"
	"errors"
	"slices"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// healthNotes is how many notes of a schedule are read to see how its last runs went, at most: up to the last that went well.
const healthNotes = 200

// regainHealths notes how the last runs of each schedule went, as the archive has it, after Redis came back empty: a schedule that
// failed before still fails, until a run of it ends.
func (t *term) regainHealths(ctx context.Context) error {
	a, err := t.cfg.Archive.Archive(ctx)
	if err != nil {
		return err
	}
	first, err := t.q.HistoryTail(eachCall{ctx, callLimit(t.session)}, "", 1)
	if err != nil {
		return err
	}
	since := "" // the notes from there on are in Redis
	if len(first.Items) > 0 {
		since = first.Items[0].ID
	}
	for after := ""; ; {
		page, err := a.Schedules(ctx, after, regainPage)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Name
		before := make(map[string]*Health, len(page))
		for i := range page {
			if before[page[i].Name], err = archivedHealth(ctx, a, page[i].Name, since); err != nil {
				return err
			}
		}
		if err := t.noteHealths(ctx, before); err != nil {
			return err
		}
	}
}

// archivedHealth reads how a schedule was before an entry of the history; "" stands for the end.
func archivedHealth(ctx context.Context, a archive.Archive, name, before string) (*Health, error) {
	var notes []history.Note // the newest first
	err := a.HistoryBefore(ctx, before, name, func(e archive.Entry) bool {
		for _, n := range slices.Backward(e.Notes) {
			if subjectOf(&n) == name {
				notes = append(notes, n)
			}
		}
		return len(notes) < healthNotes && !slices.ContainsFunc(notes, func(n history.Note) bool { return n.Word == history.Done })
	})
	h := &Health{}
	for _, n := range slices.Backward(notes) {
		h.add(&n)
	}
	return h, err
}

// noteHealths notes how schedules were before Redis came back empty, unless a run of them has ended since, or it was noted before.
func (t *term) noteHealths(ctx context.Context, before map[string]*Health) error {
	calls := eachCall{ctx, callLimit(t.session)}
	names := []string{healthPlace}
	for name, h := range before {
		if !h.Noted.IsZero() {
			names = append(names, name)
		}
	}
	for {
		noted, err := t.q.Health(calls, names)
		if err != nil {
			return err
		}
		c := queue.NoticeChange{Name: healthPlace, Was: noted[0], Set: map[string]string{}}
		for i, name := range names[1:] {
			h, since := *before[name], parseHealth(noted[i+1])
			again := !since.Troubled.IsZero() && since.Troubled.Equal(h.Troubled)
			if since.Ended.IsZero() && !again {
				c.Set[name] = h.with(&since).encode()
			}
		}
		if len(c.Set) == 0 {
			return nil
		}
		if err := t.q.NoteHealth(calls, t.term, c); !errors.Is(err, task.ErrChanged) {
			return err
		}
	}
}

// with adds to h what was noted later, where no run has ended since. The run behind which slots were skipped before is lost.
func (h *Health) with(since *Health) *Health {
	h.Failed, h.Missed, h.Skipped = h.Failed+since.Failed, h.Missed+since.Missed, since.Skipped
	h.Noted = maxTime(h.Noted, since.Noted)
	h.trouble(since.Troubled)
	if since.Task != "" {
		h.Task, h.Error = since.Task, since.Error
	}
	return h
}
