package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// Status says whether a namespace is well now: what is wrong and what needs a look, the worst first.
type Status struct {
	// Well is false if something is wrong now, or could not be asked. Warnings do not change it.
	Well  bool      `json:"well"`
	Asked time.Time `json:"asked"` // by the clock of Redis
	// Leader and Release say which instance leads; both are empty if none does.
	Leader  string `json:"leader,omitempty"`
	Release string `json:"release,omitempty"`
	// Leads says how many partitions each instance leads, if the namespace is split. Then Leader is the one that leads most.
	Leads []Leads `json:"leads,omitempty"`

	Trouble []Trouble `json:"trouble"` // at most 20 of each kind
	// More is how many were left out.
	More int `json:"more,omitempty"`
	// CouldNotAsk are the sources that did not answer. Trouble lacks what they know.
	CouldNotAsk []Unasked    `json:"could_not_ask"`
	Counts      StatusCounts `json:"counts"`

	working []Instance // those that Counts.Instances counts
	crew    crew
}

// crew is what the workers of a partition do. An instance that works in several has the same workers for all of them.
type crew struct {
	held  []queue.Held // the runs of users that hold workers
	waits time.Time    // since when tasks of users wait; zero if none does
	hint  string       // by which setting further instances add workers
}

// Leads is how many partitions an instance leads.
type Leads struct {
	Instance   string `json:"instance"`
	Release    string `json:"release,omitempty"`
	Partitions []int  `json:"partitions"`
}

// StatusCounts are the figures of a status.
type StatusCounts struct {
	// Instances may take work now, Workers is how many tasks these run at most, and Running how many run.
	Instances int   `json:"instances"`
	Workers   int   `json:"workers"`
	Running   int64 `json:"running"`
	// Schedules are all schedules, Well those that are well, and Bad those that do not do what they say.
	Schedules int `json:"schedules"`
	Well      int `json:"well"`
	Bad       int `json:"bad"`
	// Dead are the dead tasks, and Wrong the lines of trouble that are not warnings, also those that were left out.
	Dead  int64 `json:"dead"`
	Wrong int   `json:"wrong"`
}

// Unasked is a source that did not answer, with the reason.
type Unasked struct {
	Source string `json:"source"`
	Error  string `json:"error"`
}

// Trouble is one thing that is wrong, or that needs a look.
type Trouble struct {
	// Kind says what it is: a kind such as [NoLeader], or a bad [Health].
	Kind string `json:"kind"`
	// Name is the schedule, the instance or the type of tasks that it is about; empty if it is about the namespace.
	Name string `json:"name,omitempty"`
	// Warning marks what needs a look and is not wrong yet.
	Warning bool `json:"warning,omitempty"`
	// Since is when it began; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Until is when an incident was over.
	Until time.Time `json:"until,omitzero"`
	Text  string    `json:"text"`
	// Show is the command that shows more.
	Show string `json:"show"`
	// Partitions are those where it is so, if the namespace is split and the trouble is not that of one schedule.
	Partitions []int `json:"partitions,omitempty"`

	typ        string // of the tasks of the schedule, if no instance handles it
	ofSchedule bool
	busy       bool   // the schedule is overdue, and earlier runs of it go on
	at         string // the event that it is from, if the next one is another line
	sum        sum
	incident   *incident // nil: it is none
}

// sum is a figure in the text of a trouble. Lines of partitions that say the same of it are one, with the figure of all.
type sum struct {
	n   int64
	of  string
	say func(n int64) string
}

// takes makes one line of its own and that of another partition, if both say the same, and reports whether they do.
func (l *Trouble) takes(other *Trouble, partition int) bool {
	if l.Kind != other.Kind || l.Name != other.Name || l.Warning != other.Warning || l.ofSchedule || slices.Contains(l.Partitions, partition) {
		return false
	}
	switch {
	case l.incident != nil && other.incident != nil && l.incident.beside(other.incident):
		l.incident = l.incident.with(other.incident)
		n := l.incident.trouble()
		l.Text, l.Until, l.Show = n.Text, n.Until, n.Show
	case l.sum.say != nil && other.sum.say != nil && l.sum.of == other.sum.of:
		l.sum.n += other.sum.n
		l.Text = l.sum.say(l.sum.n)
	case l.Text != other.Text || l.sum.say != nil:
		return false
	}
	l.Since, l.Partitions = earlier(l.Since, other.Since), append(l.Partitions, partition)
	return true
}

// Schedule returns the schedule that a trouble of this process's status is about, or "".
func (l *Trouble) Schedule() string {
	if l.ofSchedule {
		return l.Name
	}
	return ""
}

// Busy reports whether a trouble of this process's status is that of a schedule which is overdue although runs of it go on.
func (l *Trouble) Busy() bool { return l.busy }

// The kinds of trouble besides the healths of schedules, the worst first.
const (
	NoLeader     = "no_leader"
	LeaderIdle   = "leader_idle"   // it pushes no slots
	WorkersBusy  = "workers_busy"  // all of them, while tasks wait
	InstanceIdle = "instance_idle" // it could take tasks that wait, and does not
	Waiting      = "waiting"       // tasks, for long
	DeadTasks    = "dead"
	LostWrites   = "lost"
	Outbox       = "outbox"
	Archived     = "archive"
	NoKey        = "key"   // a payload cannot be decrypted
	NoToken      = "token" // the secret of a token of the API cannot be read
	NearlyFull   = "cap"
	NoPartition  = "partition" // it does not answer
)

// worst is the order of the kinds. Paused is a schedule, or all instances.
var worst = []string{
	NoPartition, NoLeader, LeaderIdle, WorkersBusy, InstanceIdle, Incident, string(Unhandled), string(Hung), string(Failing), string(Overdue), string(Missed), string(Skipped),
	string(Stale), NoKey, Waiting, DeadTasks, LostWrites, Outbox, Archived, NoToken, NearlyFull, string(Paused), string(Retired),
}

// troubleEach is how much trouble of a kind a status has at most.
const troubleEach = 20

func (a *activity) Status(ctx context.Context) (Status, error) {
	list, unread := a.s.List(ctx)
	if list == nil && unread != nil {
		return Status{}, unread
	}
	x, err := sceneOf(ctx, a.q, a.s, a.instances, list)
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
	counts.Running = int64(len(x.held))
	v := &view{scene: x, Status: Status{Asked: x.now.UTC(), Trouble: []Trouble{}, CouldNotAsk: []Unasked{}}}
	v.Counts.Schedules, v.Counts.Running, v.Counts.Dead = len(list), counts.Running, counts.Dead
	v.lookAtInstances()
	v.lookAtSchedules(list)
	limited, err := a.q.Limited(ctx, typesOf(&counts))
	if err != nil {
		return Status{}, err
	}
	v.lookAtWork(&counts, limited)
	v.lookAtCaps(&counts, a.q.Caps())
	v.CouldNotAsk = append(v.CouldNotAsk, x.couldNotAsk()...)
	v.ask("the dead tasks", a.lookAtDead(ctx, v, counts.Dead))
	v.ask("the events", a.lookAtEvents(ctx, v))
	v.ask("the releases", a.lookAtReleases(ctx, v))
	v.ask("the archive", a.lookAtArchive(ctx, v))
	v.ask("some schedules, which a newer release wrote", unread)
	return v.done(), nil
}

// view is a status that is being made.
type view struct {
	*scene
	Status
}

func (v *view) add(t Trouble) { v.Trouble = append(v.Trouble, t) }

func (v *view) ask(source string, err error) {
	if err != nil {
		v.CouldNotAsk = append(v.CouldNotAsk, Unasked{source, strings.TrimPrefix(Brief(err), "could not ask "+source+": ")})
	}
}

// Warn adds a warning of what only the caller knows, at its place.
func (s *Status) Warn(t Trouble) {
	t.Warning = true
	rank := slices.Index(worst, t.Kind)
	i := slices.IndexFunc(s.Trouble, func(x Trouble) bool { return x.Warning && slices.Index(worst, x.Kind) > rank })
	if i < 0 {
		i = len(s.Trouble)
	}
	s.Trouble = slices.Insert(s.Trouble, i, t)
}

// done finishes a status.
func (v *view) done() Status {
	if !v.list.PausedUntil.IsZero() { // the effects of a pause are no trouble of their own
		for i := range v.Trouble {
			t := &v.Trouble[i]
			t.Warning = t.Warning || slices.Contains([]string{string(Overdue), string(Stale), Waiting, InstanceIdle}, t.Kind)
		}
	}
	v.Status.sort()
	v.Status.sum()
	return v.Status
}

// sort puts the worst first, and a pause of all instances before its effects.
func (v *Status) sort() {
	rank := func(t Trouble) int {
		if t.Kind == string(Paused) && t.Name == "" {
			return -1
		}
		return slices.Index(worst, t.Kind)
	}
	slices.SortStableFunc(v.Trouble, func(a, b Trouble) int {
		if a.Warning != b.Warning {
			if a.Warning {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
}

// sum says whether all is well, and leaves out what is too much of a kind.
func (v *Status) sum() {
	v.Well = len(v.CouldNotAsk) == 0 && !slices.ContainsFunc(v.Trouble, func(t Trouble) bool { return !t.Warning })
	seen := map[string]int{}
	kept := v.Trouble[:0]
	v.Counts.Wrong = len(v.CouldNotAsk)
	for _, t := range v.Trouble {
		if !t.Warning {
			v.Counts.Wrong++
		}
		if seen[t.Kind]++; seen[t.Kind] <= troubleEach {
			kept = append(kept, t)
		}
	}
	v.More, v.Trouble = v.More+len(v.Trouble)-len(kept), kept
}
