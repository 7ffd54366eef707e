package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// mostListed is the most items on a page that holds no tasks.
const mostListed = 10_000

// schedules registers the routes that show schedules.
func (s *Server) schedules() {
	get := http.MethodGet
	add(s, route{id: "listSchedules", method: get, path: "/schedules", summary: "List the schedules, by name", role: Viewer}, s.listSchedules)
	add(s, route{id: "getSchedule", method: get, path: "/schedules/{name}", summary: "Show a schedule, its next slots and its last runs", role: Viewer}, s.getSchedule)
	add(s, route{id: "listScheduleRuns", method: get, path: "/schedules/{name}/runs", summary: "List the outcomes of a schedule's slots, the newest first", role: Viewer}, s.listScheduleRuns)
	add(s, route{id: "listSlots", method: get, path: "/schedules/{name}/slots", summary: "List the next slots of a schedule", role: Viewer}, s.listSlots)
	add(s, route{id: "listRuns", method: get, path: "/runs", summary: "List the outcomes of all schedules' slots, the newest first", role: Viewer}, s.listRuns)
	add(s, route{id: "listRevisions", method: get, path: "/schedules/{name}/revisions", summary: "List the revisions of a schedule, also of a deleted one, the newest first", role: Viewer}, s.listRevisions)
	s.scheduleChanges()
}

// ScheduleList is a page of schedules. Unreadable says which ones are left out because a newer release wrote them.
type ScheduleList struct {
	admin.List[admin.Schedule]
	Unreadable string `json:"unreadable,omitempty"`
}

type listSchedulesIn struct {
	Deleted flag `query:"deleted" doc:"List those that were deleted and can be restored."`
	Retired flag `query:"retired" doc:"List those that a newer release does not declare."`
	Page
}

func (s *Server) listSchedules(ctx context.Context, in *listSchedulesIn) (*reply[ScheduleList], error) {
	limit, err := in.Limit.within("limit", mostListed, mostListed)
	if err != nil {
		return nil, err
	}
	deleted, err := in.Deleted.value("deleted")
	if err != nil {
		return nil, err
	}
	retired, err := in.Retired.value("retired")
	if err != nil {
		return nil, err
	}
	from := s.admin.Schedules.List
	switch {
	case deleted && retired:
		return nil, &task.FieldError{Field: "retired", Value: string(in.Retired), Reason: "not together with deleted", Hint: "ask for one of them"}
	case deleted:
		from = s.admin.Schedules.Deleted
	case retired:
		from = s.admin.Schedules.Retired
	}
	list, err := from(ctx)
	if err != nil && len(list.Items) == 0 {
		return nil, err
	}
	out := ScheduleList{List: pageOf(list.Items, in.After, limit)}
	out.CouldNotAsk = list.CouldNotAsk
	if err != nil {
		out.Unreadable = sentence(err)
	}
	return &reply[ScheduleList]{out}, nil
}

// pageOf cuts a page out of the schedules: those whose names come after a name.
func pageOf(items []admin.Schedule, after string, limit int) admin.List[admin.Schedule] {
	at, found := slices.BinarySearchFunc(items, after, func(s admin.Schedule, name string) int { return strings.Compare(s.Name, name) })
	if found {
		at++
	}
	items = items[at:]
	if len(items) <= limit {
		return admin.ListOf(items, "")
	}
	return admin.ListOf(items[:limit], items[limit-1].Name)
}

func (s *Server) getSchedule(ctx context.Context, in *named) (*tagged[admin.ScheduleDetail], error) {
	d, err := s.admin.Schedules.Get(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &tagged[admin.ScheduleDetail]{etag(d.Revision), d}, nil
}

// tagged is a JSON body with the revision of a schedule.
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

type listScheduleRunsIn struct {
	Name string `path:"name" doc:"The schedule. A slash in the name is written %2F."`
	Page
}

func (s *Server) listScheduleRuns(ctx context.Context, in *listScheduleRunsIn) (*reply[admin.List[admin.Run]], error) {
	out, err := s.runs(ctx, in.Name, &in.Page)
	if err == nil && len(out.Body.Items) == 0 && in.After == "" {
		_, err = s.admin.Schedules.Get(ctx, in.Name) // a schedule may have no run in the history any more
	}
	return out, err
}

type listRunsIn struct {
	Page
}

func (s *Server) listRevisions(ctx context.Context, in *listScheduleRunsIn) (*reply[admin.List[admin.Revision]], error) {
	limit, err := in.Limit.within("limit", 20, mostListed)
	if err != nil {
		return nil, err
	}
	list, err := s.admin.Schedules.Revisions(ctx, in.Name, limit, in.After)
	return &reply[admin.List[admin.Revision]]{list}, err
}

func (s *Server) listRuns(ctx context.Context, in *listRunsIn) (*reply[admin.List[admin.Run]], error) {
	return s.runs(ctx, "", &in.Page)
}

func (s *Server) runs(ctx context.Context, name string, p *Page) (*reply[admin.List[admin.Run]], error) {
	limit, err := p.Limit.within("limit", 20, mostListed)
	if err != nil {
		return nil, err
	}
	list, err := s.admin.Schedules.Runs(ctx, name, limit, p.After)
	return &reply[admin.List[admin.Run]]{list}, err
}

type listSlotsIn struct {
	Name  string `path:"name" doc:"The schedule. A slash in the name is written %2F."`
	From  moment `query:"from" doc:"Slots from this time on, inclusive. Default now."`
	Count number `query:"count" doc:"How many. Default 10."`
}

func (s *Server) listSlots(ctx context.Context, in *listSlotsIn) (*reply[admin.Preview], error) {
	count, err := in.Count.within("count", 10, mostListed)
	if err != nil {
		return nil, err
	}
	from, err := s.at(ctx, "from", in.From)
	if err != nil {
		return nil, err
	}
	p, err := s.admin.Schedules.Slots(ctx, in.Name, from, count)
	return &reply[admin.Preview]{p}, err
}

// etag returns the ETag of a revision.
func etag(revision int64) string { return fmt.Sprintf("%q", fmt.Sprint(revision)) }
