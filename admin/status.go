package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Status says whether a namespace is well now: what is wrong and what needs a look, the worst first.
type Status struct {
	Now time.Time `json:"now"` // by the clock of Redis
	// OK is false if something is wrong: one of the lines is bad, or something could not be asked.
	OK bool `json:"ok"`
	// Leader and Release say which instance leads; both are empty if none does.
	Leader  string `json:"leader,omitempty"`
	Release string `json:"release,omitempty"`
	// Ready is how many instances may take work, Workers how many tasks these run at most, and Running how many run.
	Ready   int   `json:"ready"`
	Workers int   `json:"workers"`
	Running int64 `json:"running"`
	// Schedules are all schedules, and Well those that are well.
	Schedules int `json:"schedules"`
	Well      int `json:"well"`

	Lines []StatusLine `json:"lines"` // at most 20 of each kind
	// More is how many lines were left out.
	More int `json:"more,omitempty"`
	// Unasked are the sources that did not answer, each with the reason. What they know is not in the lines.
	Unasked []string `json:"unasked,omitempty"`
}

// StatusLine is one thing that is wrong, or that needs a look.
type StatusLine struct {
	// Bad lines say that something is wrong now. The others are warnings.
	Bad bool `json:"bad"`
	// Kind says what it is, such as "no leader", "busy" or a [Health].
	Kind string `json:"kind"`
	// Name is the schedule, the instance or the type of tasks that it is about; empty if it is about the namespace.
	Name string `json:"name,omitempty"`
	// Since is when it began; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	Text  string    `json:"text"`
	// Command shows more.
	Command string `json:"command"`

	typ string // of the tasks of the schedule, if no instance handles it
}

// The kinds of lines besides each bad [Health], the worst first.
const (
	KindNoInstance = "no instance"
	KindNoLeader   = "no leader"
	KindUnpushed   = "pushes nothing"
	KindBusy       = "busy"
	KindIdle       = "claims nothing"
	KindWaiting    = "waiting"
	KindDead       = "dead"
	KindLost       = "lost"
	KindOutbox     = "outbox"
	KindArchive    = "archive"
	KindFull       = "nearly full"
	KindAllPaused  = "all paused"
)

// worst is the order of the lines.
var worst = []string{
	KindNoInstance, KindNoLeader, KindUnpushed, KindAllPaused, KindBusy, KindIdle, string(Unhandled), string(Hung), string(Failing), string(Overdue),
	string(Skipping), string(Stale), KindWaiting, KindDead, KindLost, KindOutbox, KindArchive, KindFull, string(Retired), string(Paused),
}

// linesEach is how many lines of a kind a status has at most.
const linesEach = 20

func (a *activity) Status(ctx context.Context) (Status, error) {
	list, unread := a.s.List(ctx)
	if list == nil && unread != nil {
		return Status{}, unread
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Schedule.Name
	}
	x, err := sceneOf(ctx, a.q, a.s, a.instances, names)
	if err != nil {
		return Status{}, err
	}
	if x.list.Leader() == nil {
		x.list.LeaderlessSince = a.instances.leaderless(ctx, &x.list)
	}
	counts, err := a.q.Counts(ctx)
	if err != nil {
		return Status{}, err
	}
	v := &view{scene: x, Status: Status{Now: x.now.UTC(), Schedules: len(list), Running: counts.Running, Lines: []StatusLine{}}}
	v.lookAtInstances()
	v.lookAtSchedules(list)
	limited, err := a.q.Limited(ctx, typesOf(&counts))
	if err != nil {
		return Status{}, err
	}
	v.lookAtWork(&counts, limited)
	v.lookAtCaps(&counts, a.q.Caps())
	if !x.upTo.IsZero() {
		v.Unasked = append(v.Unasked, "the runs since "+x.upTo.UTC().Format(time.RFC3339)+": no leader has noted how they went")
	}
	v.ask("the dead tasks", a.lookAtDead(ctx, v, counts.Dead))
	v.ask("the events", a.lookAtEvents(ctx, v))
	v.ask("who paused", a.lookForPausers(ctx, v))
	v.ask("the archive", a.lookAtArchive(ctx, v))
	v.ask("some schedules, which a newer release wrote", unread)
	return v.done(), nil
}

// view is a status that is being made.
type view struct {
	*scene
	Status
}

func (v *view) add(l StatusLine) { v.Lines = append(v.Lines, l) }

func (v *view) ask(what string, err error) {
	if err != nil {
		v.Unasked = append(v.Unasked, what+": "+strings.TrimPrefix(Brief(err), "could not ask "+what+": "))
	}
}

// done sorts the lines, and leaves out those of which there are too many.
func (v *view) done() Status {
	rank := func(l StatusLine) int { return slices.Index(worst, l.Kind) }
	slices.SortStableFunc(v.Lines, func(a, b StatusLine) int {
		bad := func(l StatusLine) int {
			if l.Bad {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(bad(a), bad(b)), cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	v.OK = len(v.Unasked) == 0 && !slices.ContainsFunc(v.Lines, func(l StatusLine) bool { return l.Bad })
	seen := map[string]int{}
	kept := v.Lines[:0]
	for _, l := range v.Lines {
		if seen[l.Kind]++; seen[l.Kind] <= linesEach {
			kept = append(kept, l)
		}
	}
	v.More, v.Lines = v.More+len(v.Lines)-len(kept), kept
	return v.Status
}
