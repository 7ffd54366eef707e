package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
	"github.com/redis/go-redis/v9"
)

// Options tune an audit. The zero value is ready to use.
type Options struct {
	// Schedule is the schedule to audit. Default: all, including those that were deleted lately.
	Schedule string
	// Since is how far back to look. Default: to the last two slots of each schedule, but at least an hour and at most 366 days.
	Since time.Duration
	// Tolerance is how long after its due time a slot may be claimed and still count as on time. Default 1s.
	Tolerance time.Duration
	// Grace is how long ago a slot without a note may have been due and still count as pending. Default 2s.
	Grace time.Duration
	// MaxSlots is how many slots of each schedule are judged at most: the newest. The report says from when on. Default
	// 10,000,000, which take 160 MB.
	MaxSlots int
}

// Auditor audits the schedules of a namespace. It changes nothing, and is safe for concurrent use.
type Auditor struct {
	q    *queue.Queue
	s    *producer.Schedules
	past *past.Past
}

// New returns the auditor of a namespace. It reads what happened in Redis, and in an archive if kept is not nil. It does not talk to
// Redis yet.
func New(rdb redis.UniversalClient, namespace string, kept *archive.Source) (*Auditor, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	p, err := producer.New(rdb, namespace, producer.Config{})
	if err != nil {
		return nil, err
	}
	return &Auditor{q: q, s: producer.NewSchedules(p, kept), past: past.Of(q, kept)}, nil
}

// groupSlots is about how many slots are judged in one pass over the history.
const groupSlots = 4_000_000

// maxPlaced is how many long-due tasks are looked up in full.
const maxPlaced = 1000

// longDue is how late a task must be before its place is looked up in full.
const longDue = time.Minute

// Run audits schedules, by name, up to the present time of Redis. It returns [task.ErrNotFound] for a
// schedule that does not exist now and did not within Options.Since. For schedules that this release cannot read it returns
// a joined error, besides the reports of the others.
func (r *Auditor) Run(ctx context.Context, opts Options) ([]Report, error) {
	all := &auditor{Auditor: r, opts: opts}
	if opts.Schedule != "" {
		all.only = setOf([]string{opts.Schedule})
	}
	if err := all.list(ctx); err != nil {
		return nil, err
	}
	var unread []error
	var reports []Report
	for _, a := range all.windows() {
		part, err := a.reports(ctx)
		if err != nil {
			return nil, err
		}
		reports, unread = append(reports, part...), append(unread, a.unread...)
	}
	slices.SortFunc(reports, func(a, b Report) int { return strings.Compare(a.Schedule, b.Schedule) })
	attended, err := r.q.Attended(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	for i := range reports {
		reports[i].attend(attended)
	}
	return reports, errors.Join(unread...)
}

// reports judges the schedules that were listed.
func (a *auditor) reports(ctx context.Context) (reports []Report, err error) {
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	var group []*ledger
	slots := 0
	names := slices.Sorted(maps.Keys(a.known))
	for i, name := range names {
		if err := ctx.Err(); err != nil { // millions of slots take seconds
			return nil, fmt.Errorf("audit: %w", context.Cause(ctx))
		}
		in := *a.known[name]
		in.MaxSlots = a.opts.MaxSlots
		l := open(in)
		group, slots = append(group, l), slots+len(l.slots)
		if slots < groupSlots && i+1 < len(names) {
			continue
		}
		if err := a.judge(ctx, group); err != nil {
			return nil, err
		}
		for _, l := range group {
			reports = append(reports, l.report())
		}
		group, slots = nil, 0
	}
	return reports, nil
}

// auditor is one audit of schedules, from one moment on.
type auditor struct {
	*Auditor
	opts     Options
	only     map[string]bool // the schedules to judge; nil: all, also those that are gone
	but      map[string]bool // those not to judge
	listed   []producer.Status
	from, to time.Time            // zero: as opts say, and now
	starts   map[string]time.Time // from when on each schedule is judged, if later than from
	now      time.Time
	known    map[string]*input
	forgot   map[string]*forgotten
	unread   []error
	unknown  []string // of only; by name
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// read reads the schedules and the rules that they had.
func (a *auditor) read(ctx context.Context) error {
	// The schedules first, then the history: by then the history has what the schedules say is dealt with.
	known, err := a.past.Known(ctx, a.from)
	if err != nil {
		return err
	}
	a.known = map[string]*input{}
	now := map[string]*producer.Status{}
	for i := range a.listed {
		if name := a.listed[i].Schedule.Name; a.wanted(name) {
			now[name] = &a.listed[i]
			a.input(name)
		}
	}
	if err := a.recall(ctx, now); err != nil {
		return err
	}
	err = a.history(ctx, a.from, func(e history.Entry) error {
		for _, n := range e.Notes {
			if n.Word == history.Was && a.wanted(n.Schedule) {
				a.was(n)
			}
			if f := a.forgot[n.Schedule]; f != nil {
				f.note(&n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range a.only {
		if a.known[name] == nil {
			a.unknown = append(a.unknown, name)
		}
	}
	if n := len(a.unknown); n > 0 && n == len(a.only) {
		return fmt.Errorf("schedule %q: %w", a.unknown[0], errors.Join(append(a.unread, task.ErrNotFound)...))
	}
	slices.Sort(a.unknown)
	events, err := a.past.Events(ctx, a.from, maxEvents)
	if err != nil {
		return err
	}
	losses, err := a.lossesOf(ctx, events)
	if err != nil {
		return err
	}
	for name, in := range a.known {
		in.Known, in.Gaps, in.Losses = known.From, known.Gaps, losses
		if f := a.forgot[name]; f != nil {
			f.complete(in)
		}
		if err := in.complete(now[name]); err != nil {
			a.unread = append(a.unread, err)
			delete(a.known, name)
		}
	}
	a.take(events)
	return nil
}

// list reads the schedules that there are, and the time.
func (a *auditor) list(ctx context.Context) (err error) {
	if name, one := a.one(); one {
		var s producer.Status
		if s, err = a.s.Get(ctx, name); err == nil {
			a.listed = []producer.Status{s}
		}
	} else {
		a.listed, err = a.s.List(ctx)
	}
	switch {
	case errors.Is(err, task.ErrNotFound): // it may have been deleted lately
	case err != nil && len(a.listed) == 0 && (store.Retryable(err) || errors.Is(err, task.ErrDenied)):
		return err
	case err != nil:
		a.unread = append(a.unread, err)
	}
	lost, err := a.s.ToRegain(ctx) // an archive that is away keeps nobody from judging what Redis has
	if err != nil {
		a.unread = append(a.unread, err)
	}
	for i := range lost {
		if a.wanted(lost[i].Schedule.Name) {
			a.listed = append(a.listed, lost[i])
		}
	}
	a.now, err = a.q.Now(ctx)
	if a.to.IsZero() || a.to.After(a.now) {
		a.to = a.now
	}
	if a.from.IsZero() {
		a.from = a.to.Add(-cmp.Or(a.opts.Since, shortest))
	}
	return err
}

func (a *auditor) wanted(name string) bool { return (a.only == nil || a.only[name]) && !a.but[name] }

// one returns the schedule to judge, if there is only one.
func (a *auditor) one() (name string, ok bool) {
	if len(a.only) != 1 {
		return "", false
	}
	for name = range a.only {
	}
	return name, true
}

func (a *auditor) input(name string) *input {
	in := a.known[name]
	if in == nil {
		from := a.from
		if at, ok := a.starts[name]; ok {
			from = at
		}
		in = &input{Schedule: name, From: from, To: a.to, Now: a.now, Tolerance: a.opts.Tolerance, Grace: a.opts.Grace}
		a.known[name] = in
	}
	return in
}

// was takes in a rule that a schedule had until it was changed or deleted.
func (a *auditor) was(n history.Note) {
	var r schedule.Rule
	err := json.Unmarshal([]byte(n.Why), &r)
	if err == nil {
		var p period
		if p, err = newPeriod(r, n.From); err == nil {
			p.Until, p.Looked = n.At, n.To
			if in := a.input(n.Schedule); n.At.After(in.From) {
				in.Periods = append(in.Periods, p)
			}
			return
		}
	}
	a.unread = append(a.unread, fmt.Errorf("schedule %q: its rule until %s: %w", n.Schedule, n.At.Format(time.RFC3339), err))
}

// complete adds the rule that a schedule has now; nil stands for a deleted one.
func (in *input) complete(s *producer.Status) error {
	if s == nil {
		in.Settled = in.Now
		return nil
	}
	in.Settled, in.Paused, in.Behind = s.Pushed, s.Paused, s.Spans
	if in.Stopped = s.Changed(in.Now); s.Pause != nil {
		in.Stopped, in.StoppedBy, in.Reason = s.Pause.At, s.Pause.By, s.Pause.Reason
	}
	in.Over = s.Schedule.MaxRuns > 0 && s.Runs >= s.Schedule.MaxRuns
	p, err := newPeriod(s.Schedule.Rule, s.Anchor)
	if err != nil {
		return fmt.Errorf("schedule %q: %w", in.Schedule, err)
	}
	in.Periods = append(in.Periods, p)
	return nil
}

// maxEvents is more events than Redis keeps.
const maxEvents = 100_000

// take notes when pauses ended, and which runs were settled in vain.
func (a *auditor) take(events []queue.Event) {
	for i := range events {
		e := &events[i]
		if in := a.known[e.Fields["schedule"]]; in != nil && e.Kind == "schedule resumed" {
			in.Resumed = append(in.Resumed, e.At)
		}
		for _, id := range e.Void() {
			if name, at, ok := task.ParseSlotID(id); ok && a.known[name] != nil {
				a.known[name].Void = append(a.known[name].Void, at)
			}
		}
	}
}

// history reads what happened since a moment; of one schedule, if there is only one to judge, where that is cheaper.
func (a *auditor) history(ctx context.Context, since time.Time, fn func(history.Entry) error) error {
	only, _ := a.one()
	return a.past.HistoryOf(ctx, only, since, fn)
}

// judge reads the history once for a group of schedules, asks for the tasks of slots that remain open, and reads what was
// written meanwhile.
func (a *auditor) judge(ctx context.Context, group []*ledger) error {
	of := make(map[string]*ledger, len(group))
	for _, l := range group {
		of[l.in.Schedule] = l
	}
	last := ""
	note := func(e history.Entry) error {
		if !history.Before(last, e.ID) {
			return nil // read before
		}
		last = e.ID
		for _, n := range e.Notes {
			if l := of[n.Schedule]; l != nil {
				l.note(n)
			}
		}
		return nil
	}
	// A run that was early may have ended before its slot.
	if err := a.history(ctx, a.from.Add(-time.Minute), note); err != nil {
		return err
	}
	held, err := a.q.Running(ctx)
	if err != nil {
		return err
	}
	for _, h := range held {
		if name, at, ok := task.ParseSlotID(h.ID); ok && of[name] != nil {
			of[name].runsSince(at, h.At)
		}
	}
	for _, l := range group {
		if err := a.stand(ctx, l); err != nil {
			return err
		}
	}
	for _, l := range group {
		l.asked = true
	}
	return a.history(ctx, later(history.At(last), a.from.Add(-time.Minute)), note)
}

// stand asks for the tasks of slots that no note settles.
func (a *auditor) stand(ctx context.Context, l *ledger) error {
	slots := slices.Collect(l.unaccounted())
	ids := make([]string, len(slots))
	for i, at := range slots {
		ids[i] = task.SlotID(l.in.Schedule, at)
	}
	found, err := a.q.Exist(ctx, ids)
	if err != nil {
		return err
	}
	placed := 0
	for i, ok := range found {
		if ok && placed < maxPlaced && slots[i].Before(a.now.Add(-longDue)) {
			placed++
			if ok, err = a.q.InPlace(ctx, ids[i]); err != nil {
				return err
			}
		}
		if ok {
			l.stands(slots[i])
		}
	}
	return nil
}
