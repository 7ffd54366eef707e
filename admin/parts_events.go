package admin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/onbeat/onbeat/task"
)

// place of an event of a namespace that is split: "<ms>-<n>@<partition>". In one order, partitions follow each other within an ID.
type eventPlace struct {
	ms, n uint64
	part  int
}

func (p eventPlace) String() string { return fmt.Sprintf("%d-%d@%d", p.ms, p.n, p.part) }

func (p eventPlace) compare(o eventPlace) int {
	return cmp.Or(cmp.Compare(p.ms, o.ms), cmp.Compare(p.n, o.n), cmp.Compare(p.part, o.part))
}

// eventPlaceOf reads the ID of an event. Without a partition it lies behind all that have the ID.
func eventPlaceOf(id string, partitions int) (eventPlace, error) {
	id, number, ok := strings.Cut(id, "@")
	p := eventPlace{part: partitions}
	if ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > partitions {
			return p, &task.FieldError{Field: "after", Value: id + "@" + number, Reason: "not a cursor", Hint: "pass the next of the previous page, or the ID of an event"}
		}
		p.part = n
	}
	if err := checkPlace(id); err != nil {
		return p, err
	}
	ms, n, _ := strings.Cut(id, "-")
	p.ms, _ = strconv.ParseUint(ms, 10, 64)
	p.n, _ = strconv.ParseUint(n, 10, 64)
	return p, nil
}

// after returns the ID behind which the events of a partition lie that come after the place.
func (p eventPlace) after(part int) string {
	switch {
	case part <= p.part:
		return fmt.Sprintf("%d-%d", p.ms, p.n)
	case p.n > 0:
		return fmt.Sprintf("%d-%d", p.ms, p.n-1)
	case p.ms > 0:
		return fmt.Sprintf("%d-%d", p.ms-1, uint64(math.MaxUint64))
	}
	return "0"
}

// Events are in the order of their IDs, so of the clocks of the nodes.
func (a activityOfParts) Events(ctx context.Context, o EventQuery) (List[Event], error) {
	o.Limit = min(cmp.Or(max(o.Limit, 0), 100), maxEvents)
	var from eventPlace
	if o.After != "" {
		var err error
		if from, err = eventPlaceOf(o.After, len(a.list)); err != nil {
			return ListOf[Event](nil, ""), err
		}
	}
	lists, missing, err := gatherSoon(ctx, a.parts, func(ctx context.Context, x *part) ([]Event, error) {
		q := o
		if o.After != "" {
			q.After = from.after(x.number)
		}
		page, err := x.activity.Events(ctx, q)
		for i := range page.Items {
			page.Items[i].ID += "@" + strconv.Itoa(x.number)
		}
		return page.Items, err
	})
	if err != nil {
		return ListOf[Event](nil, ""), err
	}
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(x, y Event) int {
		p, _ := eventPlaceOf(x.ID, len(a.list))
		q, _ := eventPlaceOf(y.ID, len(a.list))
		return p.compare(q)
	})
	page := ListOf[Event](nil, "")
	page.CouldNotAsk = missing
	switch {
	case len(all) <= o.Limit:
		page.Items = append(page.Items, all...)
	case o.After == "":
		page.Items = append(page.Items, all[len(all)-o.Limit:]...)
	default:
		page.Items = append(page.Items, all[:o.Limit]...)
	}
	if o.After != "" && len(page.Items) == o.Limit {
		page.Next = page.Items[len(page.Items)-1].ID
	}
	return page, nil
}

// Follow follows all partitions at once. It ends with the first that cannot be followed.
func (a activityOfParts) Follow(ctx context.Context, after string, fn func(Event) error) error {
	var from eventPlace
	if after != "" {
		var err error
		if from, err = eventPlaceOf(after, len(a.list)); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var turn sync.Mutex
	var all sync.WaitGroup
	for i := range a.list {
		x := &a.list[i]
		all.Go(func() {
			begin := ""
			if after != "" {
				begin = from.after(x.number)
			}
			err := x.activity.Follow(ctx, begin, func(e Event) error {
				e.ID += "@" + strconv.Itoa(x.number)
				turn.Lock()
				defer turn.Unlock()
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return fn(e)
			})
			stop(err)
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
