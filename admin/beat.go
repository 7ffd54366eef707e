package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

// BeatQuery says of which time to draw the beat.
type BeatQuery struct {
	// From and To bound the slots; both are inclusive. Zero: an hour before To, and now. A To that has not come counts as now.
	From, To time.Time
	// Schedules are the schedules to draw. None: all, including those that were deleted in that time.
	Schedules []string
	// Step sums up the slots of a schedule if there is less time than this between them, on average, so that a picture of a long
	// time stays small. A span has at most [audit.MostSteps]. Zero: each slot is by itself.
	Step time.Duration
}

// Beat is what a picture of a span of time needs: each slot that there should have been with what became of it, which
// instances were there, and which of them led.
type Beat struct {
	Now       time.Time  `json:"now"` // by the clock of Redis
	From      time.Time  `json:"from"`
	To        time.Time  `json:"to"`
	Schedules []BeatLine `json:"schedules"` // by name
	Terms     []Term     `json:"terms"`     // the oldest first
	Sessions  []Session  `json:"sessions"`  // the oldest first
	// Unknown are the schedules of the query that are gone, and had no slot in that time.
	Unknown []string `json:"unknown,omitempty"`
	// CouldNotAsk are the partitions that did not answer.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// BeatLine is the slots of one schedule, each by itself or summed up.
type BeatLine struct {
	Schedule string     `json:"schedule"`
	Slots    []BeatSlot `json:"slots"`          // the oldest first
	Sums     []BeatSum  `json:"sums,omitempty"` // the oldest first; then there are no slots
}

// BeatSum is what became of the slots of one step.
type BeatSum struct {
	At     time.Time               `json:"at"` // the step begins here, at a multiple of its length since 1970
	Counts map[audit.Verdict]int64 `json:"counts"`
	// LagMS is the longest of the slots. It is nil as long as no run of one has ended.
	LagMS   *int64 `json:"lag_ms,omitempty"`
	Retried int64  `json:"retried,omitempty"` // slots that took more than one run
}

// BeatSlot is one slot with what became of it.
type BeatSlot struct {
	Slot time.Time     `json:"slot"`
	Due  time.Time     `json:"due,omitzero"`  // the slot with its jitter; zero if it has none
	Fate audit.Verdict `json:"fate"`          // as in the report of an audit: "on_time", "late", "missed", ...
	Why  string        `json:"why,omitempty"` // why it did not run
	// LagMS is the time from when the slot was due, with its jitter, until an instance first took it. It is nil as long as no
	// run of it has ended.
	LagMS *int64 `json:"lag_ms,omitempty"`
	// Began is when the run began that goes on.
	Began time.Time `json:"began,omitzero"`
	// Attempt, Instance and Release are those of the last run that has ended.
	Attempt  int    `json:"attempt,omitempty"`
	Instance string `json:"instance,omitempty"`
	Release  string `json:"release,omitempty"`
	// Run is the whole of that run. It is there only if From and To of the query are one moment.
	Run *Run `json:"run,omitempty"`
}

// Term is a time in which an instance led.
type Term struct {
	Instance string `json:"instance"`
	Release  string `json:"release,omitempty"`
	Epoch    int64  `json:"epoch"`
	// From is zero if no event tells when the term began. To is zero while the instance leads.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Partition is the one that it led, if the namespace is split.
	Partition int `json:"partition,omitempty"`
}

// Session is a time in which an instance was registered.
type Session struct {
	Instance string    `json:"instance"`
	Release  string    `json:"release,omitempty"`
	Host     string    `json:"host,omitempty"` // empty: no event tells
	From     time.Time `json:"from,omitzero"`  // zero: no event tells
	To       time.Time `json:"to,omitzero"`    // zero: it is registered
	Lost     bool      `json:"lost,omitempty"` // it was lost, so To is the end of its lease
}

func (a *activity) Beat(ctx context.Context, o BeatQuery) (Beat, error) {
	judged, unread := a.auditor.Slots(ctx, audit.Span{From: o.From, To: o.To, Schedules: o.Schedules, Step: o.Step})
	if judged.Lines == nil && unread != nil {
		return Beat{}, unread
	}
	out := Beat{From: judged.From.UTC(), To: judged.To.UTC(), Schedules: make([]BeatLine, len(judged.Lines)), Unknown: judged.Unknown}
	for i, l := range judged.Lines {
		out.Schedules[i] = beatLineOf(&l)
		if o.From.IsZero() || !o.From.Equal(o.To) {
			continue
		}
		for k := range l.Slots {
			if last := &l.Slots[k].Last; last.Word != "" {
				run := producer.RunOf(last)
				whole := runOf(&run)
				out.Schedules[i].Slots[k].Run = &whole
			}
		}
	}
	list, err := a.instances.List(ctx)
	if err != nil {
		return Beat{}, err
	}
	events, err := a.eventsSince(ctx, out.From)
	if err != nil {
		return Beat{}, err
	}
	out.Now = list.Now
	p := presenceOf(events, &list)
	out.Terms = ListOf(within(p.terms, out.From, out.To, func(t *Term) (from, to time.Time) { return t.From, t.To }), "").Items
	out.Sessions = ListOf(within(p.sessions, out.From, out.To, func(s *Session) (from, to time.Time) { return s.From, s.To }), "").Items
	return out, unread
}

// eventsSince reads the events from a moment on, and those before it that tell which terms went on then.
func (a *activity) eventsSince(ctx context.Context, from time.Time) ([]queue.Event, error) {
	events, err := a.q.Events(ctx, time.Time{}, maxEvents)
	if err == nil && (len(events) == 0 || events[0].At.After(from)) { // they began before, as a rule within a day
		events, err = a.past.Events(ctx, from.Add(-24*time.Hour), maxEvents)
	}
	return events, err
}

func beatLineOf(l *audit.Line) BeatLine {
	out := BeatLine{Schedule: l.Schedule, Slots: make([]BeatSlot, len(l.Slots)), Sums: make([]BeatSum, len(l.Sums))}
	for i := range l.Slots {
		out.Slots[i] = beatSlotOf(&l.Slots[i])
	}
	for i, s := range l.Sums {
		out.Sums[i] = BeatSum{At: s.At, Counts: s.Counts, LagMS: lagOf(s.Ran, s.Lag), Retried: s.Retried}
	}
	return out
}

func lagOf(ran bool, lag time.Duration) *int64 {
	if !ran {
		return nil
	}
	ms := lag.Milliseconds()
	return &ms
}

func beatSlotOf(j *audit.Judged) BeatSlot {
	s := BeatSlot{
		Slot: j.Slot, Fate: j.Verdict, Why: j.Why, LagMS: lagOf(j.Ran, j.Lag), Began: j.Began,
		Attempt: j.Last.Attempt, Instance: j.Last.Instance, Release: j.Last.Release,
	}
	if !j.Due.Equal(j.Slot) {
		s.Due = j.Due
	}
	return s
}

// within returns the spans that overlap the time between two moments. A zero bound of a span is open.
func within[T any](list []T, from, to time.Time, of func(*T) (from, to time.Time)) (in []T) {
	for i := range list {
		if began, ended := of(&list[i]); !began.After(to) && (ended.IsZero() || !ended.Before(from)) {
			in = append(in, list[i])
		}
	}
	return in
}

// presence is who was there and who led, as events tell it.
type presence struct {
	terms    []Term
	sessions []Session
}

// presenceOf reads events, the oldest first, and completes them with the instances that are there now, because the oldest
// events are gone.
func presenceOf(events []queue.Event, now *InstanceList) presence {
	var p presence
	for i := range events {
		p.take(&events[i])
	}
	for i := range now.Items {
		x := &now.Items[i]
		if p.session(x.ID) == nil {
			p.sessions = append([]Session{{Instance: x.ID, Release: x.Release, Host: x.Host, From: x.Started}}, p.sessions...)
		}
		if n := len(p.terms); x.Leader && n == 0 {
			p.terms = []Term{{Instance: x.ID, Release: x.Release, Epoch: x.Epoch}}
		}
	}
	return p
}

func (p *presence) take(e *queue.Event) {
	id := e.Fields["instance"]
	switch e.Kind {
	case "joined":
		p.endSession(id, e.At, false)
		p.sessions = append(p.sessions, Session{Instance: id, Release: e.Fields["release"], Host: e.Fields["host"], From: e.At})
	case "left":
		p.leave(e, e.At, false)
	case "lost":
		at := e.At
		if lease, ok := msOf(e.Fields["lease"]); ok {
			at = lease
		}
		p.leave(e, at, true)
		p.endTerm(id, at)
	case "leader":
		if n := len(p.terms); n > 0 {
			p.endTerm(p.terms[n-1].Instance, e.At)
		}
		epoch, _ := strconv.ParseInt(e.Fields["epoch"], 10, 64)
		p.terms = append(p.terms, Term{Instance: id, Release: e.Fields["release"], Epoch: epoch, From: e.At})
	case "no leader":
		at := e.At
		if since, ok := msOf(e.Fields["since"]); ok {
			at = since
		}
		p.endTerm(id, at)
	}
}

// session returns the session of an instance that has not ended, or nil.
func (p *presence) session(id string) *Session {
	for i := len(p.sessions) - 1; i >= 0; i-- {
		if s := &p.sessions[i]; s.Instance == id {
			if s.To.IsZero() {
				return s
			}
			return nil
		}
	}
	return nil
}

func (p *presence) endSession(id string, at time.Time, lost bool) bool {
	s := p.session(id)
	if s != nil {
		s.To, s.Lost = at, lost
	}
	return s != nil
}

// leave ends a session. Of one that began before the oldest event only its end is known.
func (p *presence) leave(e *queue.Event, at time.Time, lost bool) {
	if id := e.Fields["instance"]; !p.endSession(id, at, lost) {
		p.sessions = append(p.sessions, Session{Instance: id, Release: e.Fields["release"], Host: e.Fields["host"], To: at, Lost: lost})
	}
}

// endTerm ends the last term, if it is of that instance and did not end before.
func (p *presence) endTerm(id string, at time.Time) {
	for i := len(p.terms) - 1; i >= 0; i-- {
		t := &p.terms[i]
		if t.Instance == id {
			if t.To.IsZero() || at.Before(t.To) && at.After(t.From) {
				t.To = at
			}
			return
		}
	}
}
