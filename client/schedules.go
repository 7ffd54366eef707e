package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// mostItems is the most items on a page that holds no tasks.
const mostItems = 10_000

// schedules are the schedules of a namespace behind an API.
type schedules struct{ c *conn }

func (s *schedules) Get(ctx context.Context, name string) (out admin.ScheduleDetail, err error) {
	if name == "" {
		return out, missing("schedule")
	}
	err = s.c.get(ctx, place("/schedules/%s", name), nil, &out)
	return out, err
}

func (s *schedules) List(ctx context.Context) (admin.List[admin.Schedule], error) {
	return s.all(ctx, url.Values{})
}

func (s *schedules) Deleted(ctx context.Context) (admin.List[admin.Schedule], error) {
	return s.all(ctx, url.Values{"deleted": {"true"}})
}

func (s *schedules) Retired(ctx context.Context) (admin.List[admin.Schedule], error) {
	return s.all(ctx, url.Values{"retired": {"true"}})
}

// all reads all pages of a list of schedules.
func (s *schedules) all(ctx context.Context, query url.Values) (admin.List[admin.Schedule], error) {
	all := admin.ListOf[admin.Schedule](nil, "")
	for {
		var page struct {
			admin.List[admin.Schedule]
			Unreadable string `json:"unreadable"`
		}
		if err := s.c.get(ctx, "/schedules", query, &page); err != nil {
			return admin.ListOf[admin.Schedule](nil, ""), err
		}
		all.Items = append(all.Items, page.Items...)
		for _, u := range page.CouldNotAsk { // each page is cut out of the whole list
			if !slices.ContainsFunc(all.CouldNotAsk, func(x admin.Unasked) bool { return x.Source == u.Source }) {
				all.CouldNotAsk = append(all.CouldNotAsk, u)
			}
		}
		if page.Next == "" || page.Next == query.Get("after") {
			return all, unread(page.Unreadable)
		}
		query.Set("after", page.Next)
	}
}

// unread is the error that comes besides a reply, for schedules that a newer release wrote.
func unread(text string) error {
	if text == "" {
		return nil
	}
	return &answer{text, []error{producer.ErrNewer}}
}

func (s *schedules) Runs(ctx context.Context, name string, n int, after string) (admin.List[admin.Run], error) {
	query := url.Values{}
	limit(query, n, mostItems)
	set(query, "after", after)
	path := "/runs"
	if name != "" {
		path = place("/schedules/%s/runs", name)
	}
	page, err := listOf[admin.Run](ctx, s.c, path, query)
	if errors.Is(err, task.ErrNotFound) { // the API also says that there is no such schedule
		err = nil
	}
	return page, err
}

func (s *schedules) Slots(ctx context.Context, name string, from time.Time, count int) (out admin.Preview, err error) {
	if name == "" {
		return out, missing("schedule")
	}
	query := url.Values{"count": {strconv.Itoa(min(max(count, 1), mostItems))}}
	moment(query, "from", from)
	err = s.c.get(ctx, place("/schedules/%s/slots", name), query, &out)
	if out.Slots == nil || count < 1 {
		out.Slots = []admin.Slot{}
	}
	return out, err
}

// moment sets a time. The zero time is left out.
func moment(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func (s *schedules) Plan(ctx context.Context, want producer.Schedule) (admin.Plan, error) {
	return s.put(ctx, &want, url.Values{"dry_run": {"true"}}, nil)
}

func (s *schedules) Apply(ctx context.Context, want producer.Schedule) (admin.Plan, error) {
	return s.put(ctx, &want, nil, nil)
}

func (s *schedules) ApplyIf(ctx context.Context, want producer.Schedule, revision int64) (admin.Plan, error) {
	if revision == 0 {
		return s.put(ctx, &want, nil, http.Header{"If-None-Match": {"*"}})
	}
	return s.put(ctx, &want, nil, http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(revision, 10))}})
}

func (s *schedules) put(ctx context.Context, want *producer.Schedule, query url.Values, header http.Header) (admin.Plan, error) {
	plan := admin.Plan{Name: want.Name}
	if len(want.Payload) > 0 && !json.Valid(want.Payload) {
		return plan, &task.FieldError{Field: "payload", Reason: "not JSON", Hint: "the API takes only JSON"}
	}
	x := &call{method: http.MethodPut, path: place("/schedules/%s", want.Name), query: query, header: header, body: want}
	if want.Name == "" { // the API refuses an empty name
		x.method, x.path, x.header = http.MethodPost, "/schedules", nil
	}
	err := s.c.do(ctx, x, &plan)
	return plan, err
}

func (s *schedules) Revisions(ctx context.Context, name string, n int, after string) (admin.List[admin.Revision], error) {
	if name == "" {
		return admin.ListOf[admin.Revision](nil, ""), missing("schedule")
	}
	query := url.Values{}
	limit(query, n, mostItems)
	set(query, "after", after)
	return listOf[admin.Revision](ctx, s.c, place("/schedules/%s/revisions", name), query)
}

func (s *schedules) Revert(ctx context.Context, name string, revision int64) (admin.Plan, error) {
	plan := admin.Plan{Name: name}
	err := s.change(ctx, name, "revert", map[string]any{"revision": revision}, &plan)
	return plan, err
}

func (s *schedules) Restore(ctx context.Context, name string) (out admin.Schedule, err error) {
	err = s.change(ctx, name, "restore", nil, &out)
	return out, err
}

// change posts a change of one schedule.
func (s *schedules) change(ctx context.Context, name, what string, body, out any) error {
	if name == "" {
		return missing("schedule")
	}
	return s.c.post(ctx, place("/schedules/%s/"+what, name), body, out)
}

func (s *schedules) Pause(ctx context.Context, name, reason string) (bool, error) {
	var body any
	if reason != "" {
		body = map[string]string{"reason": reason}
	}
	var out admin.Result
	err := s.change(ctx, name, "pause", body, &out)
	return out.Result == "paused", err
}

func (s *schedules) Resume(ctx context.Context, name string) (bool, error) {
	var out admin.Result
	err := s.change(ctx, name, "resume", nil, &out)
	return out.Result == "resumed", err
}

func (s *schedules) Trigger(ctx context.Context, name string, payload json.RawMessage) (string, error) {
	var body any
	if payload != nil {
		if !json.Valid(payload) {
			return "", &task.FieldError{Field: "payload", Reason: "not JSON", Hint: "the API takes only JSON"}
		}
		body = map[string]any{"payload": payload}
	}
	var out admin.Enqueued
	err := s.change(ctx, name, "trigger", body, &out)
	return out.ID, err
}

func (s *schedules) Backfill(ctx context.Context, name string, b producer.Backfilling) (admin.Backfilled, error) {
	out := admin.Backfilled{Name: name}
	body := map[string]any{"from": b.From.UTC().Format(time.RFC3339Nano), "to": b.To.UTC().Format(time.RFC3339Nano), "again": b.Again, "failed": b.Failed, "dry_run": b.DryRun}
	err := s.change(ctx, name, "backfill", body, &out)
	return out, err
}

func (s *schedules) Delete(ctx context.Context, name string) (out admin.Schedule, err error) {
	if name == "" {
		return out, missing("schedule")
	}
	err = s.c.do(ctx, &call{method: http.MethodDelete, path: place("/schedules/%s", name)}, &out)
	return out, err
}
