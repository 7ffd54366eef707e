package api

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// number is a parameter that is a whole number.
type number string

// Schema is read by huma.
func (number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger} }

// within returns the number, or the default if it is not given.
func (n number) within(name string, byDefault, most int) (int, error) {
	if n == "" {
		return byDefault, nil
	}
	v, err := strconv.Atoi(string(n))
	if err != nil || v < 1 || v > most {
		return 0, &task.FieldError{Field: name, Value: string(n), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", most)}
	}
	return v, nil
}

// flag is a parameter that is true or false.
type flag string

// Schema is read by huma.
func (flag) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

func (f flag) value(name string) (bool, error) {
	switch f {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, &task.FieldError{Field: name, Value: string(f), Reason: "must be true or false"}
}

// moment is a time, a date (midnight in UTC), or a duration, which means that long before now.
type moment string

// at returns the time, by the clock of Redis; zero if none is given.
func (s *Server) at(ctx context.Context, name string, m moment) (time.Time, error) {
	if m == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, string(m))
	if err != nil {
		t, err = time.Parse(time.DateOnly, string(m))
	}
	if err == nil {
		return t, task.CheckDue(name, t)
	}
	d, err := schedule.ParseDuration(string(m))
	if err != nil {
		return time.Time{}, &task.FieldError{Field: name, Value: string(m), Reason: "not a time, a date or a duration",
			Hint: "RFC 3339 such as 2030-01-31T09:00:00Z, a date such as 2030-01-31, or how long ago, such as 2h or 7d"}
	}
	now, err := s.admin.Activity.Now(ctx)
	return now.Add(-d), err
}

// Page has the parameters of a page.
type Page struct {
	Limit number `query:"limit" doc:"The most items on the page. It may have fewer, and still a next."`
	After string `query:"after" doc:"The next of the page before."`
}

// named is the parameter of a path that names a schedule.
type named struct {
	Name string `path:"name" doc:"The schedule. A slash in the name is written %2F."`
}

// identified is the parameter of a path that names a task or an instance.
type identified struct {
	ID string `path:"id" doc:"Its ID. A slash is written %2F."`
}

// pathOf returns the path of one of many: of a schedule by its name, of a task by its ID.
func pathOf(all, name string) string { return all + "/" + url.PathEscape(name) }
