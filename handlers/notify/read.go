package notify

import (
	"cmp"
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// How much is read at once. An entry of the history holds the runs of a batch, with their outputs if there is an archive, so
// pages are as small as entries are large.
const (
	firstPage = 20
	mostPage  = 200
	mostRuns  = 2000 // in one page
	mostPages = 200  // of each stream in one look
)

// nextPage is how many entries to read next, by how many runs a page had.
func nextPage(page, runs int) int {
	switch {
	case runs > mostRuns:
		return max(1, page/2)
	case runs < mostRuns/4:
		return min(2*page, mostPage)
	}
	return page
}

// read takes in what is new in the streams. It returns false if there is more.
func (n *Notifier) read(ctx context.Context) (whole bool, err error) {
	for _, next := range []func(context.Context) (more bool, err error){n.readEvents, n.readHistory, n.readRuns} {
		more := true
		for i := 0; i < mostPages && more; i++ {
			if more, err = next(ctx); err != nil {
				return false, err
			}
		}
		if more {
			return false, nil
		}
	}
	return true, nil
}

func (n *Notifier) readEvents(ctx context.Context) (more bool, err error) {
	list, more, err := readOn(ctx, n, n.q.EventTail, mostPage, func(p *position) *string { return &p.Event }, func(e *queue.Event) string { return e.ID })
	if err != nil {
		return false, err
	}
	for i := range list {
		for _, r := range n.known.rounds {
			r.takeEvent(&list[i])
		}
	}
	return more, nil
}

func (n *Notifier) readHistory(ctx context.Context) (more bool, err error) {
	return n.readEntries(ctx, n.q.HistoryTail, func(p *position) *string { return &p.Entry })
}

func (n *Notifier) readRuns(ctx context.Context) (more bool, err error) {
	return n.readEntries(ctx, n.q.RunsTail, func(p *position) *string { return &p.Run })
}

func (n *Notifier) readEntries(ctx context.Context, read tail[history.Entry], of func(*position) *string) (more bool, err error) {
	list, more, err := readOn(ctx, n, read, n.known.page, of, func(e *history.Entry) string { return e.ID })
	if err != nil {
		return false, err
	}
	runs := 0
	for i := range list {
		runs += len(list[i].Notes)
		for _, r := range n.known.rounds {
			r.takeEntry(&list[i], of(&r.place))
		}
	}
	n.known.page = nextPage(n.known.page, runs)
	return more, nil
}

// tail reads a page of a stream.
type tail[T any] func(ctx context.Context, after string, n int) (queue.Tail[T], error)

// readOn reads a page behind the first of the rounds' places in a stream, and deals with a place that the stream no longer has.
func readOn[T any](ctx context.Context, n *Notifier, read tail[T], page int, of func(*position) *string, id func(*T) string) (list []T, more bool, err error) {
	t, err := read(ctx, n.first(of), page)
	if err == nil && !t.There {
		next := ""
		if len(t.Items) > 0 {
			next = id(&t.Items[0])
		}
		err = n.lost(ctx, next, of)
	}
	return t.Items, t.More, err
}

// first is the earliest of the rounds' places in a stream.
func (n *Notifier) first(of func(*position) *string) string {
	least := *of(&n.known.rounds[0].place)
	for _, r := range n.known.rounds[1:] {
		if other := *of(&r.place); compareIDs(other, least) < 0 {
			least = other
		}
	}
	return least
}

// oldest is an ID before those of all entries.
const oldest = "0-1"

// Needed is the ID of the first entry of the runs of other tasks that this notifier, or the next leader's, may read again. It does
// not block.
func (n *Notifier) Needed() string {
	if id := n.needed.Load(); id != nil {
		return *id
	}
	return oldest
}

// need notes which runs are needed: the entry at the earliest place that Redis has noted, and all after it.
func (n *Notifier) need() {
	id := ""
	for i, r := range n.known.rounds {
		if p, _ := parsePosition(r.saved); i == 0 || compareIDs(p.Run, id) < 0 {
			id = p.Run
		}
	}
	id = cmp.Or(id, oldest)
	n.needed.Store(&id)
}

// lost deals with a stream that does not have the entry any more up to which it was read. If it has newer ones, the first of which
// is next, those between may have been cut off: the targets hear of that. If it has none, it went back, and is read from its end.
func (n *Notifier) lost(ctx context.Context, next string, of func(*position) *string) error {
	if next == "" {
		found, err := n.q.Ends(ctx)
		if err != nil {
			return err
		}
		ends := position{Event: found.Event, Entry: found.Entry, Run: found.Run}
		for _, r := range n.known.rounds {
			*of(&r.place) = *of(&ends)
		}
		return nil
	}
	for _, r := range n.known.rounds {
		if was := *of(&r.place); was != "" && compareIDs(was, next) < 0 {
			from, to := history.At(was).Format(time.RFC3339), history.At(next).Format(time.RFC3339)
			r.add(Unread, 1, Notice{At: history.At(next), Text: "what happened from " + from + " to " + to + " could not be read"})
		}
	}
	return nil
}
