package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/task"
)

// bulksOfParts are the bulk actions of a namespace that is split: each is one of every partition, under one ID.
type bulksOfParts struct{ *parts }

func (b bulksOfParts) Begin(ctx context.Context, s BulkSpec) (BulkTask, error) {
	if s.ID == "" {
		now, err := activityOfParts(b).Now(ctx)
		if err != nil {
			return BulkTask{}, err
		}
		s.ID = task.NewID(now)
	}
	begun, err := one(ctx, b.parts, func(ctx context.Context, x *part) (BulkTask, error) { return x.bulks.Begin(ctx, s) }, joinBulk)
	if err != nil && begun.ID != "" {
		err = fmt.Errorf("%w (bulk action %s has begun in the other partitions, and goes on there)", err, s.ID)
	}
	return begun, err
}

func (b bulksOfParts) Get(ctx context.Context, id string) (BulkTask, error) {
	return one(ctx, b.parts, func(ctx context.Context, x *part) (BulkTask, error) { return x.bulks.Get(ctx, id) }, joinBulk)
}

func (b bulksOfParts) Stop(ctx context.Context, id string) (BulkTask, error) {
	return changed(ctx, b.parts, func(ctx context.Context, x *part) (BulkTask, error) { return x.bulks.Stop(ctx, id) }, joinBulk)
}

func (b bulksOfParts) Resume(ctx context.Context, id string) (BulkTask, error) {
	return changed(ctx, b.parts, func(ctx context.Context, x *part) (BulkTask, error) { return x.bulks.Resume(ctx, id) }, joinBulk)
}

func (b bulksOfParts) List(ctx context.Context) (List[BulkTask], error) {
	lists, missing, err := gatherSoon(ctx, b.parts, func(ctx context.Context, x *part) (List[BulkTask], error) { return x.bulks.List(ctx) })
	all := ListOf[BulkTask](nil, "")
	at := map[string]int{}
	for _, l := range lists {
		for _, x := range l.Items {
			if k, ok := at[x.ID]; ok {
				joinBulk(&all.Items[k], x)
				continue
			}
			at[x.ID], all.Items = len(all.Items), append(all.Items, x)
		}
	}
	slices.SortFunc(all.Items, func(a, b BulkTask) int { return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID)) })
	all.CouldNotAsk = missing
	return all, err
}

// bulkStates are the states in order: a bulk action has the first of them that it has in a partition, so it ends when it has ended in all.
var bulkStates = []BulkState{BulkRunning, BulkWaiting, BulkFailed, BulkStopped, BulkDone}

// joinBulk adds how far a bulk action is in another partition.
func joinBulk(a *BulkTask, b BulkTask) {
	a.Matched, a.Changed, a.Unreadable = a.Matched+b.Matched, a.Changed+b.Changed, a.Unreadable+b.Unreadable
	a.AtLeast = a.AtLeast || b.AtLeast
	a.Begun, a.At = earlier(a.Begun, b.Begun), later(a.At, b.At)
	if slices.Index(bulkStates, b.State) < slices.Index(bulkStates, a.State) {
		a.State = b.State
	}
	a.StoppedBy, a.Error = cmp.Or(a.StoppedBy, b.StoppedBy), cmp.Or(a.Error, b.Error)
}

// answersOfParts lie by the ID that a caller chose.
type answersOfParts struct{ *parts }

func (a answersOfParts) ClaimAnswer(ctx context.Context, id, request string, hold time.Duration) (AnswerClaim, error) {
	return a.at(id).answers.ClaimAnswer(ctx, id, request, hold)
}

// sessionsOfParts lie by their holder.
type sessionsOfParts struct{ *parts }

func (s sessionsOfParts) BeginSession(ctx context.Context, holder, id string, end time.Time) error {
	return s.at(holder).sessions.BeginSession(ctx, holder, id, end)
}

func (s sessionsOfParts) HasSession(ctx context.Context, holder, id string) (bool, error) {
	return s.at(holder).sessions.HasSession(ctx, holder, id)
}

func (s sessionsOfParts) EndSession(ctx context.Context, holder, id string) error {
	return s.at(holder).sessions.EndSession(ctx, holder, id)
}
