package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/producer"
)

// schedulesOfParts are the schedules of a namespace that is split.
type schedulesOfParts struct{ *parts }

func (s schedulesOfParts) in(name string) *schedules { return s.at(name).schedules }

func (s schedulesOfParts) Get(ctx context.Context, name string) (ScheduleDetail, error) {
	return of[ScheduleDetail](s.at(name))(s.in(name).Get(ctx, name))
}

func (s schedulesOfParts) Slots(ctx context.Context, name string, from time.Time, count int) (Preview, error) {
	return of[Preview](s.at(name))(s.in(name).Slots(ctx, name, from, count))
}

func (s schedulesOfParts) Plan(ctx context.Context, want producer.Schedule) (Plan, error) {
	return of[Plan](s.at(want.Name))(s.in(want.Name).Plan(ctx, want))
}

func (s schedulesOfParts) Apply(ctx context.Context, want producer.Schedule) (Plan, error) {
	return of[Plan](s.at(want.Name))(s.in(want.Name).Apply(ctx, want))
}

func (s schedulesOfParts) ApplyIf(ctx context.Context, want producer.Schedule, revision int64) (Plan, error) {
	return of[Plan](s.at(want.Name))(s.in(want.Name).ApplyIf(ctx, want, revision))
}

func (s schedulesOfParts) Pause(ctx context.Context, name, reason string) (bool, error) {
	return of[bool](s.at(name))(s.in(name).Pause(ctx, name, reason))
}

func (s schedulesOfParts) Resume(ctx context.Context, name string) (bool, error) {
	return of[bool](s.at(name))(s.in(name).Resume(ctx, name))
}

func (s schedulesOfParts) Trigger(ctx context.Context, name string, payload json.RawMessage) (string, error) {
	return of[string](s.at(name))(s.in(name).Trigger(ctx, name, payload))
}

func (s schedulesOfParts) Backfill(ctx context.Context, name string, b producer.Backfilling) (Backfilled, error) {
	return of[Backfilled](s.at(name))(s.in(name).Backfill(ctx, name, b))
}

func (s schedulesOfParts) Delete(ctx context.Context, name string) (Schedule, error) {
	return of[Schedule](s.at(name))(s.in(name).Delete(ctx, name))
}

func (s schedulesOfParts) Revisions(ctx context.Context, name string, limit int, after string) (List[Revision], error) {
	return of[List[Revision]](s.at(name))(s.in(name).Revisions(ctx, name, limit, after))
}

func (s schedulesOfParts) Revert(ctx context.Context, name string, revision int64) (Plan, error) {
	return of[Plan](s.at(name))(s.in(name).Revert(ctx, name, revision))
}

func (s schedulesOfParts) Restore(ctx context.Context, name string) (Schedule, error) {
	return of[Schedule](s.at(name))(s.in(name).Restore(ctx, name))
}

func (s schedulesOfParts) List(ctx context.Context) (List[Schedule], error) {
	return s.listed(ctx, (*schedules).List)
}

func (s schedulesOfParts) Deleted(ctx context.Context) (List[Schedule], error) {
	return s.listed(ctx, (*schedules).Deleted)
}

func (s schedulesOfParts) Retired(ctx context.Context) (List[Schedule], error) {
	return s.listed(ctx, (*schedules).Retired)
}

// listed merges lists by name. A partition that has schedules which it cannot read answers all the same.
func (s schedulesOfParts) listed(ctx context.Context, list func(*schedules, context.Context) (List[Schedule], error)) (List[Schedule], error) {
	type answer struct {
		page   List[Schedule]
		unread error
	}
	answers, missing, err := gather(ctx, s.parts, func(ctx context.Context, x *part) (answer, error) {
		page, err := list(x.schedules, ctx)
		if len(page.Items) == 0 {
			return answer{page: page}, err
		}
		return answer{page, err}, nil
	})
	all := ListOf[Schedule](nil, "")
	all.CouldNotAsk = missing
	for _, a := range answers {
		all.Items = append(all.Items, a.page.Items...)
		for _, u := range a.page.CouldNotAsk {
			if !slices.Contains(all.CouldNotAsk, u) {
				all.CouldNotAsk = append(all.CouldNotAsk, u)
			}
		}
		err = errors.Join(err, a.unread)
	}
	slices.SortFunc(all.Items, func(a, b Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// Runs of all schedules come from the histories of all partitions, the newest entry first.
func (s schedulesOfParts) Runs(ctx context.Context, name string, limit int, after string) (List[Run], error) {
	if name != "" {
		return of[List[Run]](s.at(name))(s.in(name).Runs(ctx, name, limit, after))
	}
	if err := checkPlace(after); err != nil {
		return ListOf[Run](nil, ""), err
	}
	for limit = cmp.Or(max(limit, 0), 20); ; limit *= 2 {
		page, more, err := s.runs(ctx, limit, after)
		if err != nil || len(page.Items) > 0 || !more { // else one millisecond has more than the limit
			return page, err
		}
	}
}

// runs ends a page where the first history with more ends: behind that place, runs of it would be missing. It reports whether there is more.
func (s schedulesOfParts) runs(ctx context.Context, limit int, after string) (page List[Run], more bool, err error) {
	type answer struct {
		runs []producer.Run
		next string
	}
	answers, missing, err := gather(ctx, s.parts, func(ctx context.Context, x *part) (answer, error) {
		runs, next, err := x.schedules.s.Runs(ctx, "", after, limit)
		return answer{runs, next}, err
	})
	if err != nil {
		return ListOf[Run](nil, ""), false, err
	}
	end := int64(-1) // the page has what was noted after this millisecond
	for _, a := range answers {
		if a.next != "" {
			end = max(end, msOfPlace(a.next))
		}
	}
	var runs []producer.Run
	for _, a := range answers {
		for _, r := range a.runs {
			if msOfPlace(r.Entry) > end {
				runs = append(runs, r)
			}
		}
	}
	slices.SortStableFunc(runs, func(a, b producer.Run) int { return cmp.Compare(msOfPlace(b.Entry), msOfPlace(a.Entry)) })
	if len(runs) > limit { // no more than that, and the rest of the last millisecond
		last := msOfPlace(runs[limit-1].Entry)
		if n := slices.IndexFunc(runs, func(r producer.Run) bool { return msOfPlace(r.Entry) < last }); n >= 0 {
			runs, end = runs[:n], last-1
		}
	}
	page = ListOf(shownRuns(runs), "")
	page.CouldNotAsk = missing
	if end >= 0 {
		page.Next = strconv.FormatInt(end+1, 10) + "-0"
	}
	return page, end >= 0, nil
}

// msOfPlace returns the milliseconds of the ID of an entry.
func msOfPlace(id string) int64 {
	text, _, _ := strings.Cut(id, "-")
	ms, _ := strconv.ParseInt(text, 10, 64)
	return ms
}
