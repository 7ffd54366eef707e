package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// ErrBulks reports that as many bulk actions as may be are under way.
var ErrBulks = queue.ErrBulks

// Bulks are actions on all tasks that a filter matches, page after page, until each is met. A bulk action needs no caller that waits: it
// is a task of the type [task.BulkType], which goes on with the page that it was at if its instance leaves or is lost.
type Bulks interface {
	// Begin begins a bulk action. It returns an [ErrBulks] if too many are under way.
	Begin(ctx context.Context, s BulkSpec) (BulkTask, error)
	// List lists the bulk actions of the last week, the newest first: at most 100.
	List(ctx context.Context) (List[BulkTask], error)
	// Get returns a bulk action. The error matches [task.ErrNotFound] if there is none.
	Get(ctx context.Context, id string) (BulkTask, error)
	// Stop stops a bulk action, after the page that it is at. One that has ended stays as it is.
	Stop(ctx context.Context, id string) (BulkTask, error)
	// Resume lets a bulk action that was stopped, or has failed, go on where it was. Another stays as it is.
	Resume(ctx context.Context, id string) (BulkTask, error)
}

// BulkSpec says what to do to which tasks; see [Bulk].
type BulkSpec struct {
	// ID is one that the caller chose, or "". To begin a bulk action again under its ID changes nothing.
	ID     string     `json:"-"`
	Action Action     `json:"action"`
	Filter TaskFilter `json:"filter"`
	// About is how many tasks the caller has counted. Those who look how far the bulk action is see it.
	About int `json:"about,omitempty" minimum:"0" doc:"How many tasks the sender has counted, to show to others."`
	// Reason says why. The events have it, and those who look.
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"Why. The events have it."`
}

// BulkState is where a bulk action is.
type BulkState string

// The states.
const (
	BulkWaiting BulkState = queue.BulkWaiting // for an instance that works on it
	BulkRunning BulkState = queue.BulkRunning
	BulkStopped BulkState = queue.BulkStopped // by a person; it can go on
	BulkFailed  BulkState = queue.BulkFailed  // it can go on
	BulkDone    BulkState = queue.BulkDone
)

// Open reports whether there is more to do.
func (s BulkState) Open() bool { return s == BulkWaiting || s == BulkRunning }

// BulkTask is how far a bulk action is.
type BulkTask struct {
	ID string `json:"id"`
	BulkSpec
	By    string    `json:"by,omitempty"` // who began it
	State BulkState `json:"state"`
	// Matched and Changed count tasks as those of [BulkResult] do.
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	// AtLeast says that both may be short of the tasks of one call, because an instance or Redis was lost during it.
	AtLeast bool `json:"at_least,omitempty" doc:"The counts may be short of the tasks of one call, because an instance or Redis was lost during it."`
	// Unreadable tasks are of a newer release, or damaged. They are left alone.
	Unreadable int       `json:"unreadable"`
	Begun      time.Time `json:"begun"`
	At         time.Time `json:"at"` // of the last page, or of the end
	StoppedBy  string    `json:"stopped_by,omitempty"`
	Error      string    `json:"error,omitempty"` // why it failed
}

// errNewerBulk reports a bulk action that a newer release began, and that says more than this one knows.
var errNewerBulk = errors.New("a newer release began it, and this one does not know all that it says")

// bulks are those of a namespace on Redis.
type bulks struct {
	q         *queue.Queue
	tasks     Tasks
	instances Instances
}

func (b *bulks) Begin(ctx context.Context, s BulkSpec) (BulkTask, error) {
	of := Bulk{Action: s.Action, Filter: s.Filter}
	if _, err := of.shelves(); err != nil {
		return BulkTask{}, err
	}
	if s.About < 0 {
		return BulkTask{}, &task.FieldError{Field: "about", Value: strconv.Itoa(s.About), Reason: "negative"}
	}
	filter, err := json.Marshal(s.Filter)
	if err != nil {
		return BulkTask{}, err
	}
	x, err := b.q.BeginBulk(ctx, queue.Bulk{ID: s.ID, Action: string(s.Action), Filter: filter, About: s.About, Reason: s.Reason}, b.queueOf(ctx))
	return bulkOf(x), err
}

// queueOf is the queue in which a bulk action waits: one that an instance reads now.
func (b *bulks) queueOf(ctx context.Context) string {
	list, err := b.instances.List(ctx)
	name, ok := list.QueueOf(task.BulkType)
	if err != nil || !ok {
		return task.DefaultQueue
	}
	return name
}

func (b *bulks) List(ctx context.Context) (List[BulkTask], error) {
	found, err := b.q.Bulks(ctx)
	slices.SortFunc(found, func(a, b queue.Bulk) int { return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID)) })
	list := ListOf[BulkTask](nil, "")
	for _, x := range found {
		list.Items = append(list.Items, bulkOf(x))
	}
	return list, err
}

func (b *bulks) Get(ctx context.Context, id string) (BulkTask, error) {
	return shownBulk(b.q.Bulk(ctx, id))
}

func (b *bulks) Stop(ctx context.Context, id string) (BulkTask, error) {
	return shownBulk(b.q.StopBulk(ctx, id))
}

func (b *bulks) Resume(ctx context.Context, id string) (BulkTask, error) {
	return shownBulk(b.q.ResumeBulk(ctx, id, b.queueOf(ctx)))
}

func shownBulk(b queue.Bulk, err error) (BulkTask, error) {
	if err != nil {
		return BulkTask{}, err
	}
	return bulkOf(b), nil
}

// filterOf reads which tasks a bulk action is about. It refuses a filter with a field that this release does not know: the field may
// narrow the filter.
func filterOf(b *queue.Bulk) (f TaskFilter, err error) {
	d := json.NewDecoder(bytes.NewReader(b.Filter))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return TaskFilter{}, errNewerBulk
	}
	return f, nil
}

func bulkOf(b queue.Bulk) BulkTask {
	out := BulkTask{
		ID: b.ID, By: b.By, State: BulkState(b.State), Matched: b.Matched, Changed: b.Changed, Unreadable: b.Unreadable, AtLeast: b.Short, Begun: b.Begun, At: b.At,
		BulkSpec: BulkSpec{Action: Action(b.Action), About: b.About, Reason: b.Reason},
	}
	_ = json.Unmarshal(b.Filter, &out.Filter) // of a newer release as much as this one knows
	switch out.State {
	case BulkStopped:
		out.StoppedBy = b.Said
	case BulkFailed:
		out.Error = b.Said
	}
	return out
}
