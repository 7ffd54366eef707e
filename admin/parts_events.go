package admin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/onbeat/onbeat/internal/split"
)

// cursorOf reads where to go on.
func (p *parts) cursorOf(after string) (split.Cursor, error) {
	c, err := split.ParseCursor(after)
	if err != nil || c.Most() > len(p.list) {
		return c, badCursor(after)
	}
	return c, nil
}

// Events are in the order of their IDs, so of the clocks of the nodes.
func (a activityOfParts) Events(ctx context.Context, o EventQuery) (List[Event], error) {
	o.Limit = min(cmp.Or(max(o.Limit, 0), 100), maxEvents)
	from, err := a.cursorOf(o.After)
	if err != nil {
		return ListOf[Event](nil, ""), err
	}
	type answer struct {
		partition int
		events    []Event
	}
	lists, missing, err := gatherSoon(ctx, a.parts, func(ctx context.Context, x *part) (answer, error) {
		q := o
		if o.After != "" {
			q.After = from.In(x.number).ID()
		}
		page, err := x.activity.Events(ctx, q)
		for i := range page.Items {
			x.mark(&page.Items[i])
		}
		return answer{x.number, page.Items}, err
	})
	page := ListOf[Event](nil, "")
	if err != nil {
		return page, err
	}
	page.CouldNotAsk = missing
	var all []Event
	for _, x := range lists {
		all = append(all, x.events...)
	}
	slices.SortFunc(all, func(x, y Event) int { return split.PlaceOf(x.ID).Compare(split.PlaceOf(y.ID)) })
	if o.After == "" {
		page.Items = append(page.Items, all[max(len(all)-o.Limit, 0):]...)
	} else {
		page.Items = append(page.Items, all[:min(len(all), o.Limit)]...)
	}
	if len(page.Items) == 0 {
		return page, nil
	}
	last := &page.Items[len(page.Items)-1]
	if o.After == "" { // a partition that did not answer goes on at the last event of the others
		from, _ = split.ParseCursor(last.ID)
		for _, x := range lists {
			from = from.Past(split.Place{Partition: x.partition}) // it may have none so far, and a clock that is behind
		}
		for i := range all {
			from = from.Past(split.PlaceOf(all[i].ID))
		}
	} else {
		for i := range page.Items {
			from = from.Past(split.PlaceOf(page.Items[i].ID))
		}
	}
	last.Cursor = from.String()
	if o.After != "" && len(page.Items) == o.Limit {
		page.Next = last.Cursor
	}
	return page, nil
}

// mark makes an event of a partition one of the namespace.
func (x *part) mark(e *Event) { e.ID, e.Cursor = e.ID+"@"+strconv.Itoa(x.number), "" }

// Follow reads first what was missed, in order, and then follows all partitions at once. It ends with the first that cannot be followed.
func (a activityOfParts) Follow(ctx context.Context, after string, fn func(Event) error) error {
	from, err := a.cursorOf(after)
	if err != nil {
		return err
	}
	if after == "" {
		newest, err := a.Events(ctx, EventQuery{Limit: 1})
		if err != nil {
			return err
		}
		if len(newest.Items) > 0 {
			from, _ = split.ParseCursor(newest.Items[0].Cursor)
		}
	} else if from, err = a.catchUp(ctx, from, fn); err != nil {
		return err
	}
	return a.followAll(ctx, from, fn)
}

// catchUp reads what was missed. It waits a moment only for a partition that hangs: followAll reads the events that are missing then.
func (a activityOfParts) catchUp(ctx context.Context, from split.Cursor, fn func(Event) error) (split.Cursor, error) {
	for {
		soon, done := context.WithTimeout(ctx, slow)
		page, err := a.Events(soon, EventQuery{After: from.String(), Limit: 1000})
		done()
		if err != nil {
			if soon.Err() != nil { // so slow are all
				err = nil
			}
			return from, cmp.Or(context.Cause(ctx), err)
		}
		for i := range page.Items {
			e := &page.Items[i]
			from = from.Past(split.PlaceOf(e.ID))
			e.Cursor = from.String()
			if err := fn(*e); err != nil {
				return from, err
			}
		}
		if page.Next == "" {
			return from, nil
		}
	}
}

func (a activityOfParts) followAll(ctx context.Context, from split.Cursor, fn func(Event) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := from       // from may move on before the last partition begins
	var turn sync.Mutex // for from and fn
	var all sync.WaitGroup
	for i := range a.list {
		x := &a.list[i]
		all.Go(func() {
			stop(x.activity.Follow(ctx, began.In(x.number).ID(), func(e Event) error {
				x.mark(&e)
				turn.Lock()
				defer turn.Unlock()
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				from = from.Past(split.PlaceOf(e.ID))
				e.Cursor = from.String()
				return fn(e)
			}))
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
