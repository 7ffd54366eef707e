package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// Loss is a time for which Redis lost writes that it had acknowledged, in a crash or a failover, or in which some instances
// still wrote to a deposed primary. A slot that ran in that time may have run twice, or may be called lost although it ran.
type Loss struct {
	// Partition is the one that lost the writes; 0 in a namespace that is not split.
	Partition int `json:"partition,omitempty"`
	// Found is when an instance noticed the loss: the last of them, if several did.
	Found time.Time `json:"found"`
	// From is the last heartbeat of that instance that Redis still has; zero if Redis came back empty. Until is the latest
	// moment whose writes may be lost: when the instance noticed. Known is the latest that is surely lost.
	From time.Time `json:"from,omitzero"`
	// Archived is up to when the archive has what was before, if Redis came back empty; zero: there is no archive, or it has nothing.
	Archived time.Time `json:"archived,omitzero"`
	Known    time.Time `json:"known"`
	Until    time.Time `json:"until"`
}

// Losses reads the losses that were found within the given time before now, oldest first. Each instance reports what Redis
// had acknowledged to it and no longer has; reports that overlap count as one loss.
func (r *Auditor) Losses(ctx context.Context, since time.Duration) ([]Loss, error) {
	now, err := r.q.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	events, err := r.past.Events(ctx, now.Add(-since), maxEvents)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return r.lossesOf(ctx, events)
}

func (r *Auditor) lossesOf(ctx context.Context, events []queue.Event) ([]Loss, error) {
	var list []Loss
	for _, e := range events {
		if e.Kind == "lost writes" {
			list = append(list, Loss{Found: e.At, From: moment(e.Fields["kept"]), Known: moment(e.Fields["known"]), Until: e.At})
		}
	}
	list = merged(list)
	if !r.past.Archived() {
		return list, nil
	}
	for i := range list {
		if !list[i].From.IsZero() {
			continue
		}
		upTo := fmt.Sprintf("%d-0", list[i].Known.UnixMilli()+1)
		if err := r.past.HistoryBefore(ctx, upTo, "", func(e history.Entry) bool {
			list[i].Archived = e.At
			return false
		}); err != nil {
			return list, err
		}
	}
	return list, nil
}

// kept is the time up to which notes are still known: a note from before it was not lost.
func (l *Loss) kept() time.Time { return later(l.From, l.Archived) }

// merged joins losses that overlap. A loss of everything stays as it is.
func merged(list []Loss) []Loss {
	slices.SortStableFunc(list, func(a, b Loss) int { return a.From.Compare(b.From) })
	var out []Loss // losses of everything come first
	for _, l := range list {
		if n := len(out) - 1; n >= 0 && !out[n].From.IsZero() && !l.From.After(out[n].Until) {
			out[n].Found, out[n].Until, out[n].Known = later(out[n].Found, l.Found), later(out[n].Until, l.Until), later(out[n].Known, l.Known)
			continue
		}
		out = append(out, l)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// repeats reports whether a slot may have run a second time, in a time whose writes are lost. due is when the slot was due,
// noted when its note was written; zero: there is none.
func repeats(losses []Loss, due, noted time.Time) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool {
		return !due.After(l.Until) && (noted.IsZero() || !noted.Before(l.kept()))
	})
}

// mayHaveRun reports whether a slot that was noted as missed may have run before the note, in a time whose writes are lost
// and in which Redis is known to have been up.
func mayHaveRun(losses []Loss, due, noted time.Time) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool { return !due.After(l.Known) && !noted.Before(l.kept()) })
}

// moment reads unix milliseconds.
func moment(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
