package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// tasksOfParts are the tasks of a namespace that is split.
type tasksOfParts struct{ *parts }

func (t tasksOfParts) Enqueue(ctx context.Context, list []*task.Task) ([]Enqueued, error) {
	return enqueue(ctx, t.Map, list)
}

// ofTask asks the partition of a task. Of a task that the dispatcher made for itself it asks all, one after the other: there are few.
func ofTask[T any](t tasksOfParts, id string, ask func(*tasks) (T, error)) (answer T, err error) {
	if number, ok := t.ID(id); ok {
		return ask(t.list[number-1].tasks)
	}
	var failed error
	for i := range t.list {
		answer, err = ask(t.list[i].tasks)
		if err == nil || !errors.Is(err, task.ErrNotFound) && !errors.Is(err, task.ErrUnreachable) {
			return answer, err
		}
		if !errors.Is(err, task.ErrNotFound) {
			failed = err // it may be there
		}
	}
	return answer, cmp.Or(failed, err)
}

func (t tasksOfParts) Get(ctx context.Context, id string) (Task, error) {
	return ofTask(t, id, func(x *tasks) (Task, error) { return x.Get(ctx, id) })
}

func (t tasksOfParts) Cancel(ctx context.Context, id string) (TaskState, error) {
	return ofTask(t, id, func(x *tasks) (TaskState, error) { return x.Cancel(ctx, id) })
}

func (t tasksOfParts) Delete(ctx context.Context, id string) (TaskState, error) {
	return ofTask(t, id, func(x *tasks) (TaskState, error) { return x.Delete(ctx, id) })
}

func (t tasksOfParts) Retry(ctx context.Context, id string, asItWas bool) (string, error) {
	return ofTask(t, id, func(x *tasks) (string, error) { return x.Retry(ctx, id, asItWas) })
}

func (t tasksOfParts) List(ctx context.Context, o TaskQuery) (List[Task], error) {
	var silent error
	missing := map[int]Unasked{} // what is not asked, or no more: a page asks several times
	for i := range t.list {
		if err := t.silent.lately(i + 1); err != nil {
			silent, missing[i+1] = err, unaskedPart(i+1, err)
		}
	}
	if len(missing) == len(t.list) {
		return ListOf[Task](nil, ""), silent
	}
	one := *t.list[0].tasks
	one.over = &overParts{now: activityOfParts(t).Now, list: func(ctx context.Context, state task.State, lo queue.ListOptions) (queue.Page, error) {
		ctx, done := context.WithTimeout(ctx, partTime)
		defer done()
		var queues []*queue.Queue
		var numbers []int
		for i := range t.list {
			if _, ok := missing[i+1]; !ok {
				queues, numbers = append(queues, t.list[i].tasks.q), append(numbers, i+1)
			}
		}
		if len(queues) == 0 {
			return queue.Page{}, silent
		}
		began := time.Now()
		page, errs := queue.ListAll(ctx, queues, state, lo)
		var first error
		for i, err := range errs {
			if err != nil {
				first, silent = cmp.Or(first, err), err
				missing[numbers[i]] = unaskedPart(numbers[i], err)
				t.silent.note(ctx, numbers[i], err, time.Since(began))
			}
		}
		if len(missing) < len(t.list) && !errors.Is(first, task.ErrInvalid) {
			first = nil
		}
		return page, first
	}}
	page, err := one.List(ctx, o)
	for _, u := range missing {
		page.CouldNotAsk = append(page.CouldNotAsk, u)
	}
	slices.SortFunc(page.CouldNotAsk, bySource)
	return page, err
}

func bySource(a, b Unasked) int {
	return cmp.Or(cmp.Compare(len(a.Source), len(b.Source)), cmp.Compare(a.Source, b.Source))
}

// Failures reads a page of each partition. The next page goes on in each that has one.
func (t tasksOfParts) Failures(ctx context.Context, o FailureQuery) (List[FailureGroup], error) {
	from, err := placesOf(o.After, len(t.list))
	if err != nil {
		return ListOf[FailureGroup](nil, ""), err
	}
	type answer struct {
		part int
		page List[FailureGroup]
	}
	answers, missing, err := gather(ctx, t.parts, func(ctx context.Context, x *part) (answer, error) {
		i := x.number
		after, ok := from[i]
		if !ok && o.After != "" {
			return answer{part: i}, nil // it has no more
		}
		q := o
		q.After = after
		page, err := x.tasks.Failures(ctx, q)
		return answer{i, page}, err
	})
	if err != nil {
		return ListOf[FailureGroup](nil, ""), err
	}
	type kind struct{ typ, cause string }
	groups, next := map[kind]*FailureGroup{}, map[int]string{}
	for _, a := range answers {
		for _, g := range a.page.Items {
			if had := groups[kind{g.Type, g.Error}]; had != nil {
				had.join(g)
			} else {
				groups[kind{g.Type, g.Error}] = &g
			}
		}
		if a.page.Next != "" {
			next[a.part] = a.page.Next
		}
	}
	page := ListOf[FailureGroup](nil, placesText(next))
	for _, g := range groups {
		page.Items = append(page.Items, *g)
	}
	sortFailures(page.Items)
	page.CouldNotAsk = missing
	return page, nil
}

// join adds the same group of another partition.
func (g *FailureGroup) join(other FailureGroup) {
	newest, last, oldest := g.Newest, g.Last, earlier(g.Oldest, other.Oldest)
	if other.Newest.After(newest) {
		newest, last = other.Newest, other.Last
	}
	g.Add(other)
	g.Newest, g.Last, g.Oldest = newest, last, oldest
}

// placesOf reads a cursor that has a place for each partition with more: "3:place,5:place".
func placesOf(cursor string, n int) (map[int]string, error) {
	from := map[int]string{}
	if cursor == "" {
		return from, nil
	}
	for text := range strings.SplitSeq(cursor, ",") {
		number, place, ok := strings.Cut(text, ":")
		i, err := strconv.Atoi(number)
		if !ok || err != nil || i < 1 || i > n {
			return nil, &task.FieldError{Field: "after", Value: cursor, Reason: "not a cursor of this list", Hint: "pass the next of the previous page, with the same filters"}
		}
		from[i] = place
	}
	return from, nil
}

func placesText(places map[int]string) string {
	var list []string
	for _, i := range slices.Sorted(maps.Keys(places)) {
		list = append(list, strconv.Itoa(i)+":"+places[i])
	}
	return strings.Join(list, ",")
}

// Bulk goes through the partitions one after the other. The place where it goes on begins with the number of one.
func (t tasksOfParts) Bulk(ctx context.Context, b Bulk) (BulkResult, error) {
	number := 1
	if b.After != "" {
		from, err := placesOf(b.After, len(t.list))
		if err != nil || len(from) != 1 {
			return BulkResult{DryRun: b.DryRun}, cmp.Or(err, error(&task.FieldError{Field: "after", Value: b.After, Reason: "not a cursor of a bulk action"}))
		}
		for number, b.After = range from {
			break
		}
	}
	out, err := t.list[number-1].tasks.Bulk(ctx, b)
	switch {
	case err != nil || out.Next == "" && number == len(t.list):
	case out.Next == "":
		out.Next = strconv.Itoa(number+1) + ":"
	default:
		out.Next = strconv.Itoa(number) + ":" + out.Next
	}
	return out, err
}
