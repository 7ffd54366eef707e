package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/onbeat/onbeat/task"
)

// ListAll reads a page of the tasks of several partitions, in the order that [Queue.List] says of one. A page may be shorter than its
// limit. ListAll returns the error of each partition that did not answer; the page is that of the others.
func ListAll(ctx context.Context, parts []*Queue, state task.State, opts ListOptions) (Page, []error) {
	o := opts.withDefaults()
	limit := o.Limit
	o.Limit = min(limit, max(minShare, 2*limit/len(parts)))
	o.Had = max(o.Had, PageBytes-(PageBytes-o.Had)/len(parts))
	pages, errs := make([]Page, len(parts)), make([]error, len(parts))
	var all sync.WaitGroup
	for i, q := range parts {
		all.Go(func() { pages[i], errs[i] = q.List(ctx, state, o) })
	}
	all.Wait()
	return merge(pages, limit, inOrder(state)), errs
}

// minShare is the least that a partition is asked for.
const minShare = 16

// inOrder returns the order of the places of a list.
func inOrder(state task.State) func(a, b cursor) int {
	return func(a, b cursor) int {
		order := cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
		if state == task.Dead || state == task.Done {
			return -order
		}
		return cmp.Or(-cmp.Compare(a.kind, b.kind), order) // the tasks of lanes before those that are held
	}
}

// merge makes one page of many. It ends at the first end of a page that has a next one: tasks behind that may not be read yet.
func merge(pages []Page, limit int, order func(a, b cursor) int) Page {
	type place struct{ page, task int }
	var places []place
	var end cursor
	for i := range pages {
		for k := range pages[i].Tasks {
			places = append(places, place{i, k})
		}
		if next, err := parseCursor(pages[i].Next); err == nil && next.kind != 0 && (end.kind == 0 || order(next, end) < 0) {
			end = next
		}
	}
	at := func(p place) cursor { return pages[p.page].at[p.task] }
	slices.SortStableFunc(places, func(a, b place) int { return order(at(a), at(b)) })
	var out Page
	for i, p := range places {
		if end.kind != 0 && order(at(p), end) > 0 {
			break
		}
		if len(out.Tasks) == limit {
			end = at(places[i-1])
			break
		}
		out.Tasks, out.at = append(out.Tasks, pages[p.page].Tasks[p.task]), append(out.at, at(p))
	}
	for i := range pages {
		out.Bytes += pages[i].Bytes
	}
	out.Next = end.String()
	return out
}
