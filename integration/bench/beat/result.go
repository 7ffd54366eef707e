package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/integration/internal/beats"
)

// result is the outcome of one story of one peer.
type result struct {
	Peer    string              `json:"peer"`
	Story   string              `json:"story"`
	Run     int                 `json:"run"`
	Acts    []act               `json:"acts"`
	Until   time.Time           `json:"until"`
	Down    []beats.Span        `json:"down"`
	Gone    beats.Span          `json:"gone"` // the store was away
	Jobs    map[string]*verdict `json:"jobs"`
	Crashes []string            `json:"crashes,omitempty"` // replicas that ended by themselves at their start
	Machine load                `json:"machine"`
	Own     []string            `json:"own,omitempty"` // onbeat's own audit of the same runs
	Starved bool                `json:"starved,omitempty"`
}

// verdict is what became of one job.
type verdict struct {
	Acts     map[string]counts `json:"acts"`
	Sum      counts            `json:"sum"`
	Silence  float64           `json:"silence_s"`
	Repeated int               `json:"repeated"`
	Lost     int               `json:"lost"`
	Strays   int               `json:"strays"` // runs of a job that the release had dropped
	Marks    []beats.Mark      `json:"marks"`
}

// counts are marks by their fates.
type counts struct {
	Slots   int `json:"slots"`
	Missed  int `json:"missed"`
	Doubled int `json:"doubled"`
	OffGrid int `json:"off_grid"`
	Down    int `json:"down"`
	MadeUp  int `json:"made_up"`
}

func (c *counts) add(f beats.Fate) {
	if f != beats.Doubled {
		c.Slots++
	}
	switch f {
	case beats.Missed:
		c.Missed++
	case beats.Doubled:
		c.Doubled++
	case beats.OffGrid:
		c.OffGrid++
	case beats.Down:
		c.Down++
	case beats.MadeUp:
		c.MadeUp++
	}
}

// result judges all jobs.
func (s *stage) result() *result {
	r := &result{Peer: s.peer, Acts: s.acts, Until: s.until, Down: s.down, Gone: s.storeGone, Crashes: s.crashes, Jobs: map[string]*verdict{}}
	from := s.acts[1].From
	jobs, _ := s.jobsOf(0)
	for _, j := range jobs {
		runs := s.runs(j.Name)
		rule := beats.Rule{Every: j.Every, From: from, Until: s.until, Down: s.down, Quiet: []beats.Span{s.storeGone}}
		v := &verdict{Acts: map[string]counts{}}
		switch {
		case j.Name == dropped:
			for _, x := range runs {
				if x.At.After(s.droppedAt.Add(time.Second)) {
					v.Strays++
				}
			}
		case j.Name == changes:
			before, after := rule, rule
			before.Until, after.From = s.changed.From, s.changed.To
			after.Every = 3 * time.Second
			s.judge(v, before, runs, s.acts[0].From, from)
			s.judge(v, after, runs, s.changed.To, s.settled)
		case j.Wall:
			rule.Anchor = time.Unix(0, 0)
			s.add(v, beats.Judge(rule, runs))
		default:
			s.judge(v, rule, runs, s.acts[0].From, from)
		}
		r.Jobs[j.Name] = v
	}
	return r
}

// judge judges a job. A run in a calm time gives the grid.
func (s *stage) judge(v *verdict, rule beats.Rule, runs []beats.Run, from, until time.Time) {
	var candidates []time.Time
	for _, x := range runs {
		if x.At.After(from) && (x.At.Before(until) || len(candidates) == 0) {
			candidates = append(candidates, x.At)
		}
	}
	if len(candidates) == 0 {
		candidates = []time.Time{from}
	}
	s.add(v, beats.Judge(rule.Anchored(candidates, runs), runs))
}

func (s *stage) add(v *verdict, more beats.Verdict) {
	for _, m := range more.Marks {
		at := m.Slot
		if at.IsZero() {
			at = m.At
		}
		name := s.acts[1].Name
		for _, a := range s.acts[1:] {
			if !at.Before(a.From) {
				name = a.Name
			}
		}
		c := v.Acts[name]
		c.add(m.Fate)
		v.Acts[name] = c
		v.Sum.add(m.Fate)
	}
	v.Marks = append(v.Marks, more.Marks...)
	v.Repeated, v.Lost = v.Repeated+more.Repeated, v.Lost+more.Lost
	v.Silence = max(v.Silence, more.Silence.Seconds())
}

// ask asks onbeat's own audit, the second witness.
func (s *stage) ask(ctx context.Context) (list []string, err error) {
	rdb, err := onbeat.Dial("redis://" + s.store.address())
	if err != nil {
		return nil, err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "beat"})
	if err != nil {
		return nil, err
	}
	found, err := d.Admin().Activity.Audit(ctx, audit.Options{})
	for _, r := range found.Schedules {
		list = append(list, fmt.Sprintf("%s: %d slots, %v, %d runs lost, %d failed", r.Schedule, r.Slots, r.Counts, r.LostRuns, r.FailedRuns))
		for _, b := range r.Breaks {
			list = append(list, fmt.Sprintf("%s: slot %s: %s: %s", r.Schedule, b.Slot, b.Verdict, b.Detail))
		}
	}
	slices.Sort(list)
	return list, err
}
