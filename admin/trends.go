package admin

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/producer"
)

// Trends is what a chart of the runs over time needs: figures of steps of equal length, the oldest first, and when another release began to
// lead. It reaches back a week at most.
type Trends struct {
	Now      time.Time     `json:"now"` // by the clock of Redis
	From     time.Time     `json:"from"`
	Step     string        `json:"step"` // 1m, 10m or 1h
	Points   []TrendPoint  `json:"points"`
	Releases []TrendChange `json:"releases"` // the oldest first
	// CouldNotAsk are the partitions that did not answer.
	CouldNotAsk []Unasked `json:"could_not_ask,omitempty"`
}

// TrendPoint is one step. A figure that is not known, because no leader was there to note it or nothing ran, is left out.
type TrendPoint struct {
	At time.Time `json:"at"` // the step begins here
	// Finished is how many tasks ended well, also those that no schedule made.
	Finished *int64 `json:"finished,omitempty"`
	// Done, Failed, Dead and Lost count runs of schedules by how they ended; Missed and Skipped count slots that did not run.
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`
	Dead    int64 `json:"dead"`
	Lost    int64 `json:"lost"`
	Missed  int64 `json:"missed"`
	Skipped int64 `json:"skipped"`
	// LagMS is how long slots waited after they were due until their first run began, on average and at most; TookMS how long runs took.
	LagMS     *int64 `json:"lag_ms,omitempty"`
	MaxLagMS  *int64 `json:"max_lag_ms,omitempty"`
	TookMS    *int64 `json:"took_ms,omitempty"`
	MaxTookMS *int64 `json:"max_took_ms,omitempty"`
	// Waiting is the most tasks that waited for a worker or for their key, and Running the most that ran, whenever the leader looked (each 15 s).
	Waiting *int64 `json:"waiting,omitempty"`
	Running *int64 `json:"running,omitempty"`
}

// TrendChange is when an instance of another release than before began to lead.
type TrendChange struct {
	At      time.Time `json:"at"`
	Release string    `json:"release"`
}

// trendSpans say how long the steps of a span are, so that none has more than about 170.
var trendSpans = []struct {
	upTo, step time.Duration
	name       string
}{{2 * time.Hour, time.Minute, "1m"}, {26 * time.Hour, 10 * time.Minute, "10m"}, {producer.TrendsKept, time.Hour, "1h"}}

const trendDefault = time.Hour

func (a *activity) Trends(ctx context.Context, since time.Duration) (Trends, error) {
	c, err := a.course(ctx, since)
	if err != nil {
		return Trends{}, err
	}
	return c.trends(), nil
}

// course is what trends are made of.
type course struct {
	now, from time.Time
	step      time.Duration
	name      string
	minutes   []producer.Trend // those of a step more, to count from
	terms     []Term
}

func (a *activity) course(ctx context.Context, since time.Duration) (*course, error) {
	if since <= 0 {
		since = trendDefault
	}
	since = min(since, producer.TrendsKept)
	span := trendSpans[0]
	for i := 1; i < len(trendSpans) && since > span.upTo; i++ {
		span = trendSpans[i]
	}
	list, err := a.instances.List(ctx)
	if err != nil {
		return nil, err
	}
	c := &course{now: list.Now, from: list.Now.Add(-since).Truncate(span.step).Add(span.step), step: span.step, name: span.name}
	if c.minutes, err = a.s.Trends(ctx, c.from.Add(-span.step), c.now); err != nil {
		return nil, err
	}
	events, err := a.eventsSince(ctx, c.from)
	c.terms = presenceOf(events, &list).terms
	return c, err
}

func (c *course) trends() Trends {
	out := Trends{Now: c.now, From: c.from.UTC(), Step: c.name, Points: []TrendPoint{}, Releases: []TrendChange{}}
	finished := int64(-1) // as of the minute before; not known
	for i := 0; i < len(c.minutes); {
		at := c.minutes[i].At.Truncate(c.step)
		end := i
		for end < len(c.minutes) && c.minutes[end].At.Before(at.Add(c.step)) {
			end++
		}
		p, total := trendPointOf(at, c.minutes[i:end], finished)
		if finished, i = total, end; !at.Before(c.from) {
			out.Points = append(out.Points, p)
		}
	}
	led := ""
	for _, t := range c.terms {
		if t.Release != led && led != "" && t.From.After(c.from) {
			out.Releases = append(out.Releases, TrendChange{t.From.UTC(), t.Release})
		}
		led = t.Release
	}
	return out
}

// trendPointOf sums minutes up. It also returns how many tasks had finished by their end, or -1, after how many had before.
func trendPointOf(at time.Time, minutes []producer.Trend, before int64) (p TrendPoint, finished int64) {
	p.At, finished = at.UTC(), before
	var lag, maxLag, took, maxTook time.Duration
	var began, waiting, running int64
	looked := false
	for i := range minutes {
		m := &minutes[i]
		p.Done, p.Failed, p.Dead, p.Lost = p.Done+m.Done, p.Failed+m.Failed, p.Dead+m.Dead, p.Lost+m.Lost
		p.Missed, p.Skipped = p.Missed+m.Missed, p.Skipped+m.Skipped
		began, lag, maxLag, took, maxTook = began+m.Began, lag+m.Lag, max(maxLag, m.MaxLag), took+m.Took, max(maxTook, m.MaxTook)
		if m.Looked {
			waiting, running, finished, looked = max(waiting, m.Waiting), max(running, m.Running), m.Finished, true
		}
	}
	if looked {
		p.Waiting, p.Running = &waiting, &running
		if n := finished - before; before >= 0 && n >= 0 { // less than before: Redis came back empty
			p.Finished = &n
		}
	}
	mean := func(sum time.Duration, n int64) *int64 {
		ms := sum.Milliseconds() / n
		return &ms
	}
	if began > 0 {
		p.LagMS, p.MaxLagMS = mean(lag, began), mean(maxLag, 1)
	}
	if ended := p.Done + p.Failed + p.Dead; ended > 0 && took > 0 {
		p.TookMS, p.MaxTookMS = mean(took, ended), mean(maxTook, 1)
	}
	return p, finished
}
