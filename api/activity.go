package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// activity registers the routes that show how a namespace does.
func (s *Server) activity() {
	get := http.MethodGet
	add(s, route{id: "counts", method: get, path: "/counts", summary: "Count the tasks", role: Viewer}, s.counts)
	add(s, route{id: "listEvents", method: get, path: "/events", summary: "List events, the newest last", role: Viewer, streams: true}, s.listEvents)
	add(s, route{id: "audit", method: get, path: "/audit", summary: "Judge every slot of a time", role: Viewer, errors: []int{http.StatusNotFound}}, s.audit)
	add(s, route{id: "beat", method: get, path: "/beat", summary: "Show each expected slot of a span with its outcome, and the leaders", role: Viewer, errors: []int{http.StatusNotFound}}, s.beat)
	add(s, route{id: "status", method: get, path: "/status", summary: "Say whether all is well now, and what is wrong, the worst first", role: Viewer}, s.status)
	add(s, route{id: "summary", method: get, path: "/summary", summary: "Show figures of all schedules", role: Viewer}, s.summary)
	add(s, route{id: "trends", method: get, path: "/trends", summary: "Show figures over time, and when another release began to lead", role: Viewer}, s.trends)
	add(s, route{id: "preview", method: get, path: "/preview", summary: "List the slots of a rule", role: Viewer}, s.preview)
}

func (s *Server) counts(ctx context.Context, in *Aged) (*reply[admin.Counts], error) {
	ctx, err := in.within(ctx)
	if err != nil {
		return nil, err
	}
	n, err := s.admin.Activity.Counts(ctx)
	return &reply[admin.Counts]{n}, err
}

type listEventsIn struct {
	Since moment `query:"since" doc:"Only events since this time: RFC 3339, a date, or how long ago."`
	Limit number `query:"limit" doc:"The most events on the page. Default 100."`
	After string `query:"after" doc:"Only events after the one of this ID, or after a cursor (next), the oldest of them; 0 is before all. Without it, the newest events."`
}

func (s *Server) listEvents(ctx context.Context, in *listEventsIn) (*reply[admin.List[admin.Event]], error) {
	limit, err := in.Limit.within("limit", 100, mostListed)
	if err != nil {
		return nil, err
	}
	since, err := s.at(ctx, "since", in.Since)
	if err != nil {
		return nil, err
	}
	list, err := s.admin.Activity.Events(ctx, admin.EventQuery{Since: since, After: in.After, Limit: limit})
	return &reply[admin.List[admin.Event]]{list}, err
}

// AuditReply is an audit, and whether all is well. Unreadable says which schedules are left out because a newer release wrote them.
type AuditReply struct {
	admin.Audit
	OK         bool   `json:"ok"`
	Unreadable string `json:"unreadable,omitempty"`
}

type auditIn struct {
	Schedule  string `query:"schedule" doc:"The schedule to audit. Default: all, also those deleted lately."`
	Since     moment `query:"since" doc:"Look back to this time: RFC 3339, a date, or how long ago. Default: to the last two slots of each schedule, at least 1h."`
	Tolerance string `query:"tolerance" doc:"How long after its time a slot is still on time. Default 1s."`
}

func (s *Server) audit(ctx context.Context, in *auditIn) (*reply[AuditReply], error) {
	o := audit.Options{Schedule: in.Schedule, Tolerance: time.Second, MaxSlots: auditSlots}
	if in.Since != "" {
		var err error
		if o.Since, err = s.since(ctx, in.Since); err != nil {
			return nil, err
		}
	}
	if in.Tolerance != "" {
		var err error
		if o.Tolerance, err = schedule.ParseDuration(in.Tolerance); err != nil || o.Tolerance <= 0 {
			return nil, &task.FieldError{Field: "tolerance", Value: in.Tolerance, Reason: "not a duration above zero", Hint: "for example 500ms or 5s"}
		}
	}
	verdict, err := s.admin.Activity.Audit(ctx, o)
	if err != nil && len(verdict.Schedules) == 0 {
		return nil, err
	}
	out := AuditReply{Audit: verdict, OK: verdict.OK() && err == nil}
	if err != nil {
		out.Unreadable = sentence(err)
	}
	return &reply[AuditReply]{out}, nil
}

// since returns how long ago a moment was.
func (s *Server) since(ctx context.Context, m moment) (time.Duration, error) {
	if m == "" {
		return 0, nil
	}
	since, err := s.at(ctx, "since", m)
	if err != nil {
		return 0, err
	}
	now, err := s.admin.Activity.Now(ctx)
	if err != nil {
		return 0, err
	}
	if !since.Before(now) {
		return 0, &task.FieldError{Field: "since", Value: string(m), Reason: "not before now", Hint: "for example 90s, 1h30m, 7d or 2030-01-31"}
	}
	return now.Sub(since), nil
}

func (s *Server) status(ctx context.Context, in *Aged) (*reply[admin.Status], error) {
	ctx, err := in.within(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.admin.Activity.Status(ctx)
	if err == nil && s.cfg.Tokens != nil {
		out.Trouble = slices.Clone(out.Trouble) // others share it
		for _, t := range s.cfg.Tokens() {
			if t.Trouble != "" { // it may name files, which are no business of a viewer
				out.Warn(admin.Trouble{Kind: admin.NoToken, Name: t.Name, Since: t.Since.UTC(), Text: "the secret of this token cannot be read: the log of the instance says why", Show: "onbeat check"})
			}
		}
	}
	return &reply[admin.Status]{out}, err
}

type summaryIn struct {
	Aged
	Since moment `query:"since" doc:"Look back to this time: RFC 3339, a date, or how long ago. Default 5m."`
}

func (s *Server) summary(ctx context.Context, in *summaryIn) (*reply[admin.Summary], error) {
	ctx, err := in.within(ctx)
	if err != nil {
		return nil, err
	}
	since, err := s.since(ctx, in.Since)
	if err != nil {
		return nil, err
	}
	sum, err := s.admin.Activity.Summary(ctx, since)
	return &reply[admin.Summary]{sum}, err
}

type trendsIn struct {
	Since moment `query:"since" doc:"Look back to this time: RFC 3339, a date, or how long ago, at most a week. Default 1h."`
}

func (s *Server) trends(ctx context.Context, in *trendsIn) (*reply[admin.Trends], error) {
	since, err := s.since(ctx, in.Since)
	if err != nil {
		return nil, err
	}
	list, err := s.admin.Activity.Trends(ctx, since)
	return &reply[admin.Trends]{list}, err
}

// auditSlots is how many slots of each schedule an audit judges at most. They take 32 MB.
const auditSlots = 2_000_000

// lone is an activity that makes one audit at a time: a viewer's question must not take the memory of the dispatcher. A sender has one
// audit at work or in line, so the line is of many senders. A second one waits for a moment, because the first may just end.
type lone struct {
	admin.Activity
	work chan struct{} // has the one at work
	line *places       // of those at work or in line
}

func newLone(a admin.Activity) lone {
	return lone{Activity: a, work: make(chan struct{}, 1), line: newPlaces(knownAtMost, 1)}
}

func (l lone) Audit(ctx context.Context, o audit.Options) (admin.Audit, error) {
	return alone(ctx, l, func() (admin.Audit, error) { return l.Activity.Audit(ctx, o) })
}

// Beat draws a beat. One that is summed up may judge as many slots as an audit.
func (l lone) Beat(ctx context.Context, o admin.BeatQuery) (admin.Beat, error) {
	if o.Step == 0 {
		return l.Activity.Beat(ctx, o)
	}
	return alone(ctx, l, func() (admin.Beat, error) { return l.Activity.Beat(ctx, o) })
}

func alone[T any](ctx context.Context, l lone, judge func() (T, error)) (none T, err error) {
	who := identityOf(ctx).Name
	moment, over := context.WithTimeout(ctx, paceTime)
	defer over()
	if l.line.enter(moment, who) != nil {
		return none, errAudits
	}
	defer l.line.leave(who)
	wait, done := context.WithTimeout(ctx, slotTime)
	defer done()
	select {
	case l.work <- struct{}{}:
		defer func() { <-l.work }()
		return judge()
	case <-wait.Done():
		return none, errAudits
	}
}

var errAudits = &refusal{http.StatusTooManyRequests, "rate", "another audit is at work", "try again later, or ask for a shorter time"}

// BeatReply is a beat. Unreadable says which schedules are left out because a newer release wrote them.
type BeatReply struct {
	admin.Beat
	Unreadable string `json:"unreadable,omitempty"`
}

type beatIn struct {
	Aged
	From     moment   `query:"from" doc:"First slot at or after this time: RFC 3339, a date, or how long ago. Default an hour before to."`
	To       moment   `query:"to" doc:"Last slot at or before this time. Default now."`
	Schedule []string `query:"schedule,explode" doc:"The schedules to show; the parameter may come many times. Default all."`
	Step     string   `query:"step" doc:"Sum up the slots of a schedule in steps of this length, such as 5m, if there is less time than that between them. A span has at most 2,000 steps. Default: each slot is by itself."`
}

func (s *Server) beat(ctx context.Context, in *beatIn) (*reply[BeatReply], error) {
	ctx, err := in.within(ctx)
	if err != nil {
		return nil, err
	}
	from, err := s.at(ctx, "from", in.From)
	if err != nil {
		return nil, err
	}
	to, err := s.at(ctx, "to", in.To)
	if err != nil {
		return nil, err
	}
	o := admin.BeatQuery{From: from, To: to, Schedules: in.Schedule}
	if in.Step != "" {
		if o.Step, err = schedule.ParseDuration(in.Step); err != nil || o.Step < time.Millisecond {
			return nil, &task.FieldError{Field: "step", Value: in.Step, Reason: "not a duration of 1 ms or more", Hint: "for example 5s or 10m"}
		}
	}
	b, err := s.admin.Activity.Beat(ctx, o)
	if err != nil && len(b.Schedules) == 0 {
		return nil, err
	}
	out := BeatReply{Beat: b}
	if err != nil {
		out.Unreadable = sentence(err)
	}
	return &reply[BeatReply]{out}, nil
}
