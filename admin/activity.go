package admin

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Activity shows what happens in a namespace.
type Activity interface {
	// Now returns the time by the clock of Redis, which alone decides.
	Now(ctx context.Context) (time.Time, error)
	// Counts counts the tasks, however many there are, at the cost of a few of them.
	Counts(ctx context.Context) (Counts, error)
	// Events returns a page of events; see [EventQuery].
	Events(ctx context.Context, o EventQuery) (List[Event], error)
	// Follow calls fn with each event after the one of that ID or [Event.Cursor] ("": from now on), until ctx ends or fn returns an
	// error, which Follow returns. To go on after another error, pass the cursor of the last event: partitions do not share a clock, so
	// in a namespace that is split an event may come later than one with a larger ID.
	Follow(ctx context.Context, after string, fn func(Event) error) error
	// Audit judges every slot of a time; see [audit.Run]. Besides the reports it returns a joined error for schedules that
	// this release cannot read.
	Audit(ctx context.Context, o audit.Options) (Audit, error)
	// Beat returns each expected slot of a span of time with what became of it, and who led when; see [Beat].
	Beat(ctx context.Context, o BeatQuery) (Beat, error)
	// Status says whether all is well now, and what is wrong. It reads a bounded part of the namespace, however large that is. Sources
	// that cannot be read are in CouldNotAsk; the error is only that of Redis.
	Status(ctx context.Context) (Status, error)
	// Summary says in a few numbers how the schedules have done since so long ago (0: 5 minutes).
	Summary(ctx context.Context, since time.Duration) (Summary, error)
	// Trends returns figures over time since so long ago (0: an hour), at most a week; see [Trends].
	Trends(ctx context.Context, since time.Duration) (Trends, error)
}

// EventQuery says which events to read: without After the newest ones, with After the oldest ones after it. Either way the
// newest of them is last.
type EventQuery struct {
	// Since leaves out what was before. Zero: nothing is left out.
	Since time.Time
	// After is the ID of an event. Only later ones are read, and the Next of the page is the After of the page that follows.
	// "0" is before all.
	After string
	// Limit is the most events on the page, up to 10,000. Default 100.
	Limit int
}

// maxEvents is the most events on a page.
const maxEvents = 10_000

// Event is one change of state, such as a new leader or a lost instance.
type Event struct {
	ID     string            `json:"id"`
	At     time.Time         `json:"at"`
	Event  string            `json:"event"` // its kind: "joined", "leader", "lost", ...
	Fields map[string]string `json:"fields"`
	// Cursor is what to pass as after to go on behind this event. Follow sets it, and a page for its last event. In a namespace that is
	// not split it is the ID.
	Cursor string `json:"-"`
}

func eventOf(e *queue.Event) Event {
	return Event{ID: e.ID, At: e.At, Event: e.Kind, Fields: e.Fields, Cursor: e.ID}
}

// Counts is the state of a namespace in numbers, as of about Now.
type Counts struct {
	Now     time.Time `json:"now"` // by the clock of Redis
	Running int64     `json:"running"`
	Waiting int64     `json:"waiting"` // their due time has come
	Overdue int64     `json:"overdue"` // of those, the tasks that have waited for a worker for longer than [OverdueAfter]
	Held    int64     `json:"held"`    // of those, the tasks that wait for their key
	// Later are due later: retrying or planned. Only the record of each task tells which, so they are counted together.
	Later int64 `json:"later"`
	Dead  int64 `json:"dead"`
	Done  int64 `json:"done"` // finished tasks that are kept

	// Finished, Retried and Died are totals since the namespace was made.
	Finished int64 `json:"finished"`
	Retried  int64 `json:"retried"`
	Died     int64 `json:"died"`

	Schedules int64  `json:"schedules"`
	Lanes     []Lane `json:"lanes"`
	// Partitions are the counts of each partition that answered, in order, if the namespace is split.
	Partitions []PartitionCounts `json:"partitions,omitempty"`
	// CouldNotAsk are the partitions that did not answer. Nothing in them is counted.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// PartitionCounts is what lies in one partition, and where that is. See [Counts].
type PartitionCounts struct {
	Partition int    `json:"partition"`
	Node      string `json:"node,omitempty"` // the address of the node of a Redis Cluster that holds it now
	Running   int64  `json:"running"`
	Waiting   int64  `json:"waiting"`
	Later     int64  `json:"later"`
	Dead      int64  `json:"dead"`
	Schedules int64  `json:"schedules"`
}

// Lane counts the tasks of one queue, type and priority, as [Counts] does, without those that are held.
type Lane struct {
	Queue    string    `json:"queue"`
	Type     string    `json:"type"`
	Priority string    `json:"priority"`
	Waiting  int64     `json:"waiting"`
	Overdue  int64     `json:"overdue"`
	Later    int64     `json:"later"`
	Head     time.Time `json:"head,omitzero"` // the earliest due time
}

// Audit is the verdict on every slot of a time.
type Audit struct {
	Schedules []audit.Report `json:"schedules"`
	// LostWrites are the times whose writes Redis has lost.
	LostWrites []audit.Loss `json:"lost_writes,omitempty"`
	// CouldNotAsk are the sources that did not answer how the schedules are now.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// OK reports whether there is something to judge, and all of it is judged and well.
func (a *Audit) OK() bool {
	for i := range a.Schedules {
		if !a.Schedules[i].OK() {
			return false
		}
	}
	return len(a.Schedules) > 0 && len(a.CouldNotAsk) == 0
}

// activity is what happens in a namespace on Redis.
type activity struct {
	q         *queue.Queue
	s         *producer.Schedules
	past      *past.Past
	auditor   *audit.Auditor
	instances *instances
	tasks     *tasks
	summaries summaries
	incidents incidents
}

func (a *activity) Now(ctx context.Context) (time.Time, error) { return a.q.Now(ctx) }

func (a *activity) Counts(ctx context.Context) (Counts, error) {
	n, err := a.q.Counts(ctx)
	if err != nil {
		return Counts{}, err
	}
	out := Counts{
		Now: n.Now, Running: n.Running, Waiting: n.Overdue + n.Held, Overdue: n.Late, Held: n.Held, Later: n.Due - n.Overdue, Dead: n.Dead, Done: n.Done,
		Finished: n.Finished, Retried: n.Retried, Died: n.Died, Schedules: n.Schedules, Lanes: make([]Lane, len(n.Lanes)),
	}
	for i, l := range n.Lanes {
		out.Lanes[i] = Lane{
			Queue: l.Lane.Queue, Type: l.Lane.Type, Priority: l.Lane.Priority.String(), Waiting: l.Overdue, Overdue: l.Late, Later: l.Due - l.Overdue, Head: l.Head,
		}
	}
	return out, nil
}

func (a *activity) Events(ctx context.Context, o EventQuery) (List[Event], error) {
	if o.Limit <= 0 {
		o.Limit = 100
	}
	o.Limit = min(o.Limit, maxEvents)
	err := checkPlace(o.After)
	if err != nil {
		return ListOf[Event](nil, ""), err
	}
	var list []queue.Event
	if o.After == "" {
		list, err = a.past.Events(ctx, o.Since, o.Limit)
	} else {
		list, err = a.past.EventsAfter(ctx, o.After, o.Since, o.Limit)
	}
	page := List[Event]{Items: make([]Event, len(list))}
	for i := range list {
		page.Items[i] = eventOf(&list[i])
	}
	if o.After != "" && len(list) == o.Limit {
		page.Next = list[len(list)-1].ID
	}
	return page, err
}

func (a *activity) Follow(ctx context.Context, after string, fn func(Event) error) error {
	if err := checkPlace(after); err != nil {
		return err
	}
	return a.q.FollowEvents(ctx, after, func(e queue.Event) error { return fn(eventOf(&e)) })
}

// checkPlace refuses what is not the ID of an event of a namespace that is not split: <ms>-<n>, or only <ms>. "" is allowed. Nothing can
// come after the largest ID, so Redis refuses to look there.
func checkPlace(s string) error {
	if p, err := split.ParsePlace(s); s != "" && (err != nil || p.Partition != 0) {
		return badCursor(s)
	}
	return nil
}

func badCursor(s string) error {
	return &task.FieldError{Field: "after", Value: s, Reason: "not a cursor", Hint: "pass the next of the previous page, or the ID of an event"}
}

func (a *activity) Audit(ctx context.Context, o audit.Options) (Audit, error) {
	reports, err := a.auditor.Run(ctx, o)
	out := Audit{Schedules: append([]audit.Report{}, reports...)}
	if err != nil && len(reports) == 0 {
		return out, err
	}
	var failed error
	if out.CouldNotAsk, failed = a.addConditions(ctx, o.Schedule, out.Schedules); failed != nil {
		return out, failed
	}
	if out.LostWrites, failed = a.auditor.Losses(ctx, sinceOf(o, out.Schedules)); failed != nil {
		return out, failed
	}
	return out, err
}

// sinceOf is how far back an audit looked.
func sinceOf(o audit.Options, reports []audit.Report) time.Duration {
	if o.Since > 0 {
		return o.Since
	}
	since := time.Hour
	for i := range reports {
		since = max(since, reports[i].To.Sub(reports[i].From))
	}
	return since
}

// addConditions adds to the reports of schedules that are not well now why, as a status says it.
func (a *activity) addConditions(ctx context.Context, only string, reports []audit.Report) (unasked []Unasked, err error) {
	var list []producer.Status
	if only == "" {
		if list, err = a.s.List(ctx); list == nil && err != nil {
			return nil, err
		}
	} else if one, err := a.s.Get(ctx, only); err == nil {
		list = append(list, one)
	} else if !errors.Is(err, task.ErrNotFound) { // it was deleted lately
		return nil, err
	}
	at := map[string]*audit.Report{}
	for i := range reports {
		at[reports[i].Schedule] = &reports[i]
	}
	x, err := sceneOf(ctx, a.q, a.s, a.instances, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		c := x.judge(&list[i])
		if r := at[list[i].Schedule.Name]; r != nil && c.Health.Bad() {
			r.Add(audit.Trouble{Kind: string(c.Health), Since: c.Since, Text: c.Why})
		}
	}
	return x.couldNotAsk(), nil
}
