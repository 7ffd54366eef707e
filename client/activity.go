package client

import (
	"context"
	"net/url"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/schedule"
)

// activity is what happens in a namespace behind an API.
type activity struct{ c *conn }

func (a *activity) Now(ctx context.Context) (time.Time, error) {
	n, err := a.Counts(ctx)
	return n.Now, err
}

func (a *activity) Counts(ctx context.Context) (out admin.Counts, err error) {
	err = a.c.get(ctx, "/counts", nil, &out)
	return out, err
}

func (a *activity) Events(ctx context.Context, o admin.EventQuery) (admin.List[admin.Event], error) {
	query := url.Values{}
	moment(query, "since", o.Since)
	set(query, "after", o.After)
	limit(query, o.Limit, mostItems)
	return listOf[admin.Event](ctx, a.c, "/events", query)
}

// Audit leaves the grace of the options to the API.
func (a *activity) Audit(ctx context.Context, o audit.Options) (admin.Audit, error) {
	query := url.Values{}
	set(query, "schedule", o.Schedule)
	if o.Since > 0 {
		query.Set("since", schedule.FormatDuration(o.Since.Round(time.Millisecond)))
	}
	if o.Tolerance > 0 {
		query.Set("tolerance", schedule.FormatDuration(o.Tolerance))
	}
	var out struct {
		admin.Audit
		Unreadable string `json:"unreadable"`
	}
	if err := a.c.get(ctx, "/audit", query, &out); err != nil {
		return admin.Audit{Schedules: []audit.Report{}}, err
	}
	return out.Audit, unread(out.Unreadable)
}

func (a *activity) Beat(ctx context.Context, o admin.BeatQuery) (admin.Beat, error) {
	query := url.Values{"schedule": o.Schedules}
	moment(query, "from", o.From)
	moment(query, "to", o.To)
	if o.Step > 0 {
		query.Set("step", schedule.FormatDuration(o.Step))
	}
	var out struct {
		admin.Beat
		Unreadable string `json:"unreadable"`
	}
	if err := a.c.get(ctx, "/beat", query, &out); err != nil {
		return admin.Beat{}, err
	}
	return out.Beat, unread(out.Unreadable)
}

func (a *activity) Status(ctx context.Context) (out admin.Status, err error) {
	err = a.c.get(ctx, "/status", nil, &out)
	return out, err
}

func (a *activity) Summary(ctx context.Context, since time.Duration) (out admin.Summary, err error) {
	err = a.c.get(ctx, "/summary", lookBack(since), &out)
	return out, err
}

func (a *activity) Trends(ctx context.Context, since time.Duration) (out admin.Trends, err error) {
	err = a.c.get(ctx, "/trends", lookBack(since), &out)
	return out, err
}

func lookBack(since time.Duration) url.Values {
	query := url.Values{}
	if since > 0 {
		query.Set("since", schedule.FormatDuration(since.Round(time.Millisecond)))
	}
	return query
}
