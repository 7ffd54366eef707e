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

// Errands are what the server does to all tasks that a filter matches, page after page, until it has met all of them. An errand
// needs nobody who waits for it: an instance that serves the API works on it, and another goes on where that one was if it leaves or
// is lost. Where no instance serves the API, it waits, and is forgotten after [queue.ErrandsKept].
type Errands interface {
	// Begin begins an errand. It returns a [queue.ErrErrands] if too many are under way.
	Begin(ctx context.Context, s ErrandSpec) (Errand, error)
	// List lists the errands of the last week, the newest first: at most 100.
	List(ctx context.Context) (List[Errand], error)
	// Get returns an errand. The error matches [queue.ErrNotFound] if there is none.
	Get(ctx context.Context, id string) (Errand, error)
	// Stop stops an errand, after the page that it is at. One that has ended stays as it is.
	Stop(ctx context.Context, id string) (Errand, error)
	// Resume lets an errand that was stopped, or has failed, go on where it was. Another stays as it is.
	Resume(ctx context.Context, id string) (Errand, error)
}

// ErrandSpec says what to do to which tasks; see [Bulk].
type ErrandSpec struct {
	// ID is one that the caller chose, or "". To begin an errand again under its ID changes nothing.
	ID     string     `json:"-"`
	Action Action     `json:"action"`
	Filter TaskFilter `json:"filter"`
	// About is how many tasks the caller has counted. Those who look how far the errand is see it.
	About int `json:"about,omitempty" minimum:"0" doc:"How many tasks the sender has counted, to show to others."`
}

// Errand is how far an errand is.
type Errand struct {
	ID string `json:"id"`
	ErrandSpec
	By    string            `json:"by,omitempty"` // who began it
	State queue.ErrandState `json:"state"`
	// Matched and Changed count tasks as those of [BulkResult] do. They lack those of a page during which a worker was lost.
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	// Unreadable tasks are of a newer release, or damaged. They are left alone.
	Unreadable int       `json:"unreadable"`
	Begun      time.Time `json:"begun"`
	At         time.Time `json:"at"` // of the last page, or of the end
	StoppedBy  string    `json:"stopped_by,omitempty"`
	Error      string    `json:"error,omitempty"` // why it failed
}

// errNewerErrand reports an errand that a newer release began, and that says more than this one knows.
var errNewerErrand = errors.New("a newer release began it, and this one does not know all that it says")

// errands are those of a namespace on Redis.
type errands struct {
	q     *queue.Queue
	tasks Tasks
}

func (e *errands) Begin(ctx context.Context, s ErrandSpec) (Errand, error) {
	b := Bulk{Action: s.Action, Filter: s.Filter}
	if _, err := b.states(); err != nil {
		return Errand{}, err
	}
	if s.About < 0 {
		return Errand{}, &task.FieldError{Field: "about", Value: strconv.Itoa(s.About), Reason: "negative"}
	}
	asked, err := json.Marshal(s)
	if err != nil {
		return Errand{}, err
	}
	id, err := e.q.BeginErrand(ctx, s.ID, asked)
	if err != nil {
		return Errand{}, err
	}
	return e.Get(ctx, id)
}

func (e *errands) List(ctx context.Context) (List[Errand], error) {
	found, err := e.q.Errands(ctx)
	slices.SortFunc(found, func(a, b queue.Errand) int { return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID)) })
	list := ListOf[Errand](nil, "")
	for i := range found {
		list.Items = append(list.Items, errandOf(&found[i]))
	}
	return list, err
}

func (e *errands) Get(ctx context.Context, id string) (Errand, error) {
	found, err := e.q.Errand(ctx, id)
	if err != nil {
		return Errand{}, err
	}
	return errandOf(&found), nil
}

func (e *errands) Stop(ctx context.Context, id string) (Errand, error) {
	if err := e.q.StopErrand(ctx, id); err != nil {
		return Errand{}, err
	}
	return e.Get(ctx, id)
}

func (e *errands) Resume(ctx context.Context, id string) (Errand, error) {
	if err := e.q.ResumeErrand(ctx, id); err != nil {
		return Errand{}, err
	}
	return e.Get(ctx, id)
}

// askedOf reads what an errand is to do. What it does not know may narrow the filter, so it takes no part of it for the whole.
func askedOf(e *queue.Errand) (s ErrandSpec, err error) {
	d := json.NewDecoder(bytes.NewReader(e.Asked))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return ErrandSpec{}, errNewerErrand
	}
	return s, nil
}

func errandOf(e *queue.Errand) Errand {
	out := Errand{
		ID: e.ID, By: e.By, State: e.State, Matched: e.Matched, Changed: e.Changed, Unreadable: e.Unreadable, Begun: e.Begun, At: e.At,
	}
	_ = json.Unmarshal(e.Asked, &out.ErrandSpec) // of a newer release as much as this one knows
	switch e.State {
	case queue.ErrandStopped:
		out.StoppedBy = e.Said
	case queue.ErrandFailed:
		out.Error = e.Said
	}
	return out
}
