package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// activityOfParts is what happens in a namespace that is split.
type activityOfParts struct{ *parts }

// Now is the time of the first partition that answers.
func (a activityOfParts) Now(ctx context.Context) (time.Time, error) {
	type answer struct {
		now time.Time
		err error
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	answers := make(chan answer, len(a.list))
	for i := range a.list {
		go func() {
			now, err := a.list[i].activity.Now(ctx)
			answers <- answer{now, err}
		}()
	}
	var err error
	for range a.list {
		x := <-answers
		if x.err == nil {
			return x.now, nil
		}
		err = cmp.Or(err, x.err)
	}
	return time.Time{}, err
}

func (a activityOfParts) Counts(ctx context.Context) (Counts, error) {
	type answer struct {
		Counts
		of PartitionCounts
	}
	all, missing, err := gatherSoon(ctx, a.parts, func(ctx context.Context, x *part) (answer, error) {
		c, err := x.activity.Counts(ctx)
		return answer{c, PartitionCounts{
			Partition: x.number, Node: x.activity.q.Node(ctx), Running: c.Running, Waiting: c.Waiting, Later: c.Later, Dead: c.Dead, Schedules: c.Schedules,
		}}, err
	})
	out := Counts{Lanes: []Lane{}, CouldNotAsk: missing}
	type name struct{ queue, typ, priority string }
	at := map[name]int{}
	for i := range all {
		c := &all[i].Counts
		out.Partitions = append(out.Partitions, all[i].of)
		out.Now = later(out.Now, c.Now)
		out.Running, out.Waiting, out.Overdue, out.Held = out.Running+c.Running, out.Waiting+c.Waiting, out.Overdue+c.Overdue, out.Held+c.Held
		out.Later, out.Dead, out.Done, out.Schedules = out.Later+c.Later, out.Dead+c.Dead, out.Done+c.Done, out.Schedules+c.Schedules
		out.Finished, out.Retried, out.Died = out.Finished+c.Finished, out.Retried+c.Retried, out.Died+c.Died
		for _, l := range c.Lanes {
			n := name{l.Queue, l.Type, l.Priority}
			k, ok := at[n]
			if !ok {
				at[n], out.Lanes = len(out.Lanes), append(out.Lanes, l)
				continue
			}
			had := &out.Lanes[k]
			had.Waiting, had.Overdue, had.Later = had.Waiting+l.Waiting, had.Overdue+l.Overdue, had.Later+l.Later
			if !l.Head.IsZero() {
				had.Head = earlier(had.Head, l.Head)
			}
		}
	}
	return out, err
}

func (a activityOfParts) Audit(ctx context.Context, o audit.Options) (Audit, error) {
	if o.Schedule != "" {
		return a.at(o.Schedule).audit(ctx, o)
	}
	type answer struct {
		Audit
		unread error
	}
	all, missing, err := gather(ctx, a.parts, func(ctx context.Context, x *part) (answer, error) {
		out, err := x.audit(ctx, o)
		if len(out.Schedules) == 0 {
			return answer{Audit: out}, err
		}
		return answer{out, err}, nil
	})
	out := Audit{Schedules: []audit.Report{}, CouldNotAsk: missing}
	for _, x := range all {
		out.Schedules = append(out.Schedules, x.Schedules...)
		out.LostWrites = append(out.LostWrites, x.LostWrites...)
		out.CouldNotAsk = append(out.CouldNotAsk, x.CouldNotAsk...)
		err = errors.Join(err, x.unread)
	}
	slices.SortFunc(out.Schedules, func(a, b audit.Report) int { return cmp.Compare(a.Schedule, b.Schedule) })
	return out, err
}

// audit is the audit of a partition, which says that it is its own.
func (x *part) audit(ctx context.Context, o audit.Options) (Audit, error) {
	out, err := x.activity.Audit(ctx, o)
	for i := range out.LostWrites {
		out.LostWrites[i].Partition = x.number
	}
	return out, err
}

func (a activityOfParts) Beat(ctx context.Context, o BeatQuery) (Beat, error) {
	names := map[int][]string{}
	for _, name := range o.Schedules {
		n := a.at(name).number
		names[n] = append(names[n], name)
	}
	type answer struct {
		Beat
		unread error
	}
	failed := make([]error, len(a.list))
	all, missing, err := gather(ctx, a.parts, func(ctx context.Context, x *part) (numbered[answer], error) {
		q := o
		if q.Schedules = names[x.number]; len(o.Schedules) > 0 && len(q.Schedules) == 0 {
			return numbered[answer]{}, nil // those that are asked for lie in others
		}
		out, err := x.activity.Beat(ctx, q)
		if errors.Is(err, task.ErrNotFound) { // all that are asked for here are gone
			return numbered[answer]{x.number, answer{Beat{Unknown: q.Schedules}, err}}, nil
		}
		if failed[x.number-1] = err; out.Now.IsZero() {
			return numbered[answer]{}, err
		}
		return numbered[answer]{x.number, answer{out, err}}, nil
	})
	out := Beat{Schedules: []BeatLine{}, Terms: []Term{}, Sessions: []Session{}, CouldNotAsk: missing}
	var gone error
	for _, x := range all {
		if x.part == 0 {
			continue
		}
		b := &x.answer
		if b.Now.IsZero() {
			gone, out.Unknown = cmp.Or(gone, b.unread), append(out.Unknown, b.Unknown...)
			continue
		}
		out.Now, out.From, out.To = later(out.Now, b.Now), earlier(out.From, b.From), later(out.To, b.To)
		out.Schedules, out.Unknown = append(out.Schedules, b.Schedules...), append(out.Unknown, b.Unknown...)
		for _, t := range b.Terms {
			t.Partition = x.part
			out.Terms = append(out.Terms, t)
		}
		out.Sessions = append(out.Sessions, b.Sessions...)
		err = errors.Join(err, b.unread)
	}
	if out.Now.IsZero() { // no partition that has one of them answered
		for n := range names {
			err = cmp.Or(err, failed[n-1], a.silent.lately(n))
		}
		return Beat{}, cmp.Or(err, gone)
	}
	slices.SortFunc(out.Schedules, func(a, b BeatLine) int { return cmp.Compare(a.Schedule, b.Schedule) })
	slices.SortStableFunc(out.Terms, func(a, b Term) int { return a.From.Compare(b.From) })
	out.Sessions = joinSessions(out.Sessions)
	return out, err
}

// joinSessions makes one session of those that an instance has in several partitions at the same time.
func joinSessions(list []Session) []Session {
	slices.SortStableFunc(list, func(a, b Session) int { return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.From.Compare(b.From)) })
	out := []Session{}
	for _, s := range list {
		last := len(out) - 1
		if last < 0 || out[last].Instance != s.Instance || !out[last].To.IsZero() && s.From.After(out[last].To) {
			out = append(out, s)
			continue
		}
		had := &out[last]
		had.Host, had.Release = cmp.Or(had.Host, s.Host), cmp.Or(had.Release, s.Release)
		if had.To.IsZero() || s.To.IsZero() {
			had.To = time.Time{}
		} else {
			had.To = later(had.To, s.To)
		}
		had.Lost = had.Lost || s.Lost
	}
	slices.SortStableFunc(out, func(a, b Session) int { return a.From.Compare(b.From) })
	return out
}

func (a activityOfParts) Summary(ctx context.Context, since time.Duration) (Summary, error) {
	all, missing, err := gatherSoon(ctx, a.parts, func(ctx context.Context, x *part) (*tally, error) { return x.activity.tally(ctx, since) })
	if err != nil {
		return Summary{}, err
	}
	out := all[0]
	for _, t := range all[1:] {
		out.join(t)
	}
	out.measure()
	out.CouldNotAsk = missing
	return out.Summary, nil
}

// join adds what happened in another partition.
func (t *tally) join(other *tally) {
	t.Now, t.From = later(t.Now, other.Now), later(t.From, other.From)
	t.Active, t.Paused = t.Active+other.Active, t.Paused+other.Paused
	t.Done, t.Failed, t.Dead, t.Lost = t.Done+other.Done, t.Failed+other.Failed, t.Dead+other.Dead, t.Lost+other.Lost
	t.Missed, t.Skipped = t.Missed+other.Missed, t.Skipped+other.Skipped
	for i := range t.Ahead {
		t.Ahead[i] += other.Ahead[i]
	}
	for id, lag := range other.lags {
		t.lags[id] = lag
	}
}

func (a activityOfParts) Trends(ctx context.Context, since time.Duration) (Trends, error) {
	all, missing, err := gather(ctx, a.parts, func(ctx context.Context, x *part) (*course, error) { return x.activity.course(ctx, since) })
	if err != nil {
		return Trends{}, err
	}
	out := all[0]
	rest := make([][]producer.Trend, 0, len(all))
	for _, c := range all[1:] {
		rest = append(rest, c.minutes)
	}
	out.minutes = producer.JoinTrends(out.minutes, rest...)
	trends := out.trends()
	trends.CouldNotAsk = missing
	return trends, nil
}
