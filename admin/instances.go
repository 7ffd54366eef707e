package admin

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Instances shows the instances of a namespace, and says which of them shall lead and work.
type Instances interface {
	// List returns all registered instances, the highest rank first. They may have changed since.
	List(ctx context.Context) (InstanceList, error)
	// Promote makes a release the newest, as if it had been rolled out now. The error matches [task.ErrNotFound] if no
	// instance of it is registered, and none was lost lately.
	Promote(ctx context.Context, release string) (Promoted, error)
	// Resign makes an instance give up the lead and work on. Another one leads when Resign returns; the instance leads again
	// only when no other can, or when its release is promoted. The error matches [task.ErrNotFound] or [instance.ErrNoOther].
	Resign(ctx context.Context, id string) error
	// Drain makes an instance finish its runs and leave, and its process end, as SIGTERM does. It takes no more work when Drain
	// returns, and leaves the list when it has finished. The error matches [task.ErrNotFound].
	Drain(ctx context.Context, id string) error
	// Pause lets no instance begin a task for a time of up to [instance.LongestPause]. Tasks that run go on. The reason may be "".
	Pause(ctx context.Context, d time.Duration, reason string) (Pause, error)
	// Resume ends a pause before its time.
	Resume(ctx context.Context) error
}

// Instance is a registered instance.
type Instance struct {
	ID         string           `json:"id"`
	Release    string           `json:"release"`
	Generation int64            `json:"generation"`
	Order      int64            `json:"order"`
	State      string           `json:"state"` // starting, ready or draining; in a namespace that is split, ready if it is so in each partition that answers
	Standby    bool             `json:"standby,omitempty"`
	Resigned   bool             `json:"resigned,omitempty"`  // it was asked to resign, and leads only if no other can
	Suspected  bool             `json:"suspected,omitempty"` // it showed no sign of life while it led: another leads, if one can
	Leader     bool             `json:"leader"`
	Epoch      int64            `json:"epoch,omitempty"` // of the leader; 0 in a namespace that is split
	Leads      []int            `json:"leads,omitempty"` // the partitions that it leads, if the namespace is split
	Lead       instance.Lead    `json:"lead"`
	Consume    instance.Consume `json:"consume"`
	Running    int64            `json:"running"`
	Host       string           `json:"host"`
	PID        int              `json:"pid"`
	Started    time.Time        `json:"started"`
	Types      []string         `json:"types,omitempty"`  // the task types that it handles
	Queues     []string         `json:"queues,omitempty"` // the queues that it reads; empty: all
	// Concurrency is how many tasks it runs at most; 0 if it does not say.
	Concurrency int `json:"concurrency,omitempty"`
	// LeaseMS is how long its lease is; 0 if it does not say. LeaseLeftMS is what is left of it: not above 0 once it has run
	// out. ProbationLeftMS is what is left of its probation; 0 if it is not on probation.
	LeaseMS         int64 `json:"lease_ms,omitempty"`
	LeaseLeftMS     int64 `json:"lease_left_ms"`
	ProbationLeftMS int64 `json:"probation_left_ms,omitempty"`
}

// LeaseLeft returns what is left of the lease. It is not above zero once the lease has run out.
func (i *Instance) LeaseLeft() time.Duration { return time.Duration(i.LeaseLeftMS) * time.Millisecond }

// ProbationLeft returns what is left of the probation; zero if the instance is not on probation.
func (i *Instance) ProbationLeft() time.Duration {
	return time.Duration(i.ProbationLeftMS) * time.Millisecond
}

// InstanceList lists the instances, and says whether they may work and which leads.
type InstanceList struct {
	Now   time.Time  `json:"now"` // by the clock of Redis
	Items []Instance `json:"items"`
	// PausedUntil is set while no instance may begin a task, and PauseReason if a reason was given.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	PauseReason string    `json:"pause_reason,omitempty"`
	// LeaderlessSince is set while no instance leads: the moment at which the last leader's lease ended, zero if it is not
	// known.
	LeaderlessSince time.Time `json:"leaderless_since,omitzero"`
	// LeaderlessParts are the partitions that no instance leads, if the namespace is split.
	LeaderlessParts []int `json:"leaderless_partitions,omitempty"`
	// CouldNotAsk are the partitions that did not answer.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// Leader returns the instance that leads, or nil.
func (l *InstanceList) Leader() *Instance {
	for i := range l.Items {
		if x := &l.Items[i]; x.Leader && x.LeaseLeftMS > 0 {
			return x
		}
	}
	return nil
}

// Leaderless says since when no instance leads, such as " since 2030-01-31 15:04:05 (12s)". It is "" if one leads, or if that is
// not known.
func (l *InstanceList) Leaderless() string {
	if l.LeaderlessSince.IsZero() {
		return ""
	}
	return " since " + l.LeaderlessSince.UTC().Format(time.DateTime) + " (" + wording.Span(l.Now.Sub(l.LeaderlessSince)) + ")"
}

// Handles reports whether an instance that may take tasks now handles those of a type in a queue. While no instance leads,
// it counts each one that is there.
func (l *InstanceList) Handles(queue, typ string) bool {
	lead := l.Leader()
	return slices.ContainsFunc(l.Items, func(i Instance) bool {
		may := lead == nil || i.Leader || i.State == "ready" &&
			(lead.Consume == instance.ConsumeAll || lead.Consume == instance.ConsumeRelease && i.Order == lead.Order)
		return may && i.LeaseLeftMS > 0 && slices.Contains(i.Types, typ) && (len(i.Queues) == 0 || slices.Contains(i.Queues, queue))
	})
}

// QueueOf returns a queue from which an instance that may take tasks now takes those of a type: the default one if it can be. It returns
// false if no instance takes any.
func (l *InstanceList) QueueOf(typ string) (string, bool) {
	names := []string{task.DefaultQueue}
	for _, i := range l.Items {
		names = append(names, i.Queues...)
	}
	at := slices.IndexFunc(names, func(name string) bool { return l.Handles(name, typ) })
	if at < 0 {
		return "", false
	}
	return names[at], true
}

// Pause says until when no instance begins a task.
type Pause struct {
	Until time.Time `json:"until,omitzero"`
}

// Promoted is what became of a release that was made the newest.
type Promoted struct {
	Release string `json:"release"`
	Leader  string `json:"leader"` // the instance that leads, of whatever release
	Leads   bool   `json:"leads"`  // that instance is of this release
}

// instances are the instances of a namespace on Redis.
type instances struct {
	q   *queue.Queue
	reg *instance.Registry
}

func (n *instances) List(ctx context.Context) (InstanceList, error) {
	out, err := n.registered(ctx)
	if err == nil {
		out.LeaderlessSince = n.leaderless(ctx, &out)
	}
	return out, err
}

// registered is List without the time since when no instance leads, for which the events are read.
func (n *instances) registered(ctx context.Context) (InstanceList, error) {
	out := InstanceList{Items: []Instance{}}
	list, err := n.reg.List(ctx)
	if err != nil {
		return out, err
	}
	if out.Now, err = n.q.Now(ctx); err != nil {
		return out, err
	}
	for i := range list {
		out.Items = append(out.Items, instanceOf(&list[i]))
	}
	out.PausedUntil, out.PauseReason, err = n.reg.Paused(ctx)
	return out, err
}

func instanceOf(i *instance.Info) Instance {
	return Instance{
		ID: i.ID, Release: i.Release, Generation: i.Generation, Order: i.Order, State: i.State, Standby: i.Standby, Resigned: i.Resigned,
		Suspected: i.Suspected, Leader: i.Leader, Epoch: i.Epoch, Lead: i.Lead, Consume: i.Consume, Running: i.Running, Host: i.Host, PID: i.PID,
		Started: i.Started, Types: i.Types, Queues: i.Queues, Concurrency: i.Concurrency, LeaseMS: i.LeaseMS,
		LeaseLeftMS: i.Lease.Milliseconds(), ProbationLeftMS: i.Probation.Milliseconds(),
	}
}

// leaderless returns since when no instance leads: the end of the last leader's lease, because the others may have found out
// long after. It is zero if an instance leads, or if it is not known.
func (n *instances) leaderless(ctx context.Context, list *InstanceList) time.Time {
	var since time.Time
	if i := slices.IndexFunc(list.Items, func(i Instance) bool { return i.Leader }); i >= 0 {
		if list.Items[i].LeaseLeftMS > 0 {
			return time.Time{}
		}
		since = list.Now.Add(list.Items[i].LeaseLeft()) // no instance has found out yet
	} else {
		for _, most := range []int{100, queue.MaxEvents} { // most often it happened lately
			events, err := n.q.Events(ctx, time.Time{}, most)
			if err != nil {
				return time.Time{}
			}
			if since = leaderlessIn(events); !since.IsZero() || len(events) < most {
				break
			}
		}
	}
	if since.After(list.Now) {
		return time.Time{}
	}
	return since
}

// leaderlessIn finds in events, the newest last, since when no instance leads. It is zero if one does, or if the events do not
// reach back to it.
func leaderlessIn(events []queue.Event) time.Time {
	for _, e := range slices.Backward(events) {
		switch e.Kind {
		case "leader":
			return time.Time{}
		case "no leader":
			if ms, ok := msOf(e.Fields["since"]); ok {
				return ms
			}
			return e.At
		}
	}
	return time.Time{}
}

func msOf(text string) (time.Time, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return store.FromMs(n), err == nil && n > 0
}

func (n *instances) Promote(ctx context.Context, release string) (Promoted, error) {
	p := Promoted{Release: release}
	v, err := n.reg.Promote(ctx, release)
	if err != nil {
		return p, err
	}
	list, err := n.reg.List(ctx)
	if err != nil {
		return p, err
	}
	p.Leader = v.Leader
	i := slices.IndexFunc(list, func(i instance.Info) bool { return i.ID == v.Leader })
	p.Leads = i >= 0 && list[i].Release == release
	return p, nil
}

func (n *instances) Resign(ctx context.Context, id string) error {
	_, err := n.reg.AskToResign(ctx, id, queue.Actor(ctx))
	return err
}

func (n *instances) Drain(ctx context.Context, id string) error {
	_, err := n.reg.AskToDrain(ctx, id, queue.Actor(ctx))
	return err
}

func (n *instances) Pause(ctx context.Context, d time.Duration, reason string) (Pause, error) {
	v, err := n.reg.Pause(ctx, d, reason)
	if err != nil {
		return Pause{}, err
	}
	return Pause{Until: v.Now.Add(d)}, nil
}

func (n *instances) Resume(ctx context.Context) error {
	_, err := n.reg.Pause(ctx, 0, "")
	return err
}
