package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onbeat/onbeat/integration/internal/beats"
	"github.com/onbeat/onbeat/internal/trial"
)

// script is how often each act of the story comes.
type script struct {
	updates, kills, freezes, recreates int
	changeAt, dropAt                   int // the releases that change the interval of a job, and drop one
}

var (
	wholeStory = script{updates: 10, kills: 4, freezes: 2, recreates: 4, changeAt: 4, dropAt: 7}
	shortStory = script{updates: 2, kills: 1, freezes: 1, recreates: 1, changeAt: 1, dropAt: 2}
)

// The acts, in their order. Slots of the calm are not judged: they show the grid.
const (
	calm      = "calm"
	updates   = "updates"
	kills     = "kills"
	freezes   = "freezes"
	away      = "away"
	recreates = "recreates"
)

var acts = []string{updates, kills, freezes, away, recreates}

const (
	inTheMiddle = 1500 * time.Millisecond // of a run of three seconds
	out         = 5 * time.Second         // how long a replica is frozen, and the store away
	restart     = time.Second             // how long a supervisor takes to start a killed replica again
	recreate    = 2 * time.Second         // from the end of the only replica to the start of the next
	peace       = 7 * time.Second         // from one act to the next
)

// act is a part of the story.
type act struct {
	Name string    `json:"name"`
	From time.Time `json:"from"`
}

// play plays the story.
func (s *stage) play(ctx context.Context) error {
	s.begin(calm)
	for host := range s.hosts {
		if err := s.start(ctx, host); err != nil {
			return err
		}
	}
	s.sleep(ctx, 16*time.Second) // three slots of the slowest job, and the time in which a first leader is elected
	for _, one := range []struct {
		name  string
		times int
		play  func(context.Context) error
	}{
		{updates, s.updates, s.update},
		{kills, s.kills, s.kill},
		{freezes, s.freezes, s.freeze},
		{away, 1, s.storeAway},
		{recreates, s.recreates, s.recreate},
	} {
		s.begin(one.name)
		for range one.times {
			if err := one.play(ctx); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
	}
	s.until = time.Now()
	return nil
}

// update replaces both replicas by those of the next release: a new one comes up, then an old one gets SIGTERM.
func (s *stage) update(ctx context.Context) error {
	s.release++
	began := time.Now()
	for host := range s.hosts {
		old := s.hosts[host]
		middle := s.middleOfRun(ctx)
		if err := s.start(ctx, host); err != nil {
			return err
		}
		s.sleep(ctx, time.Until(middle.at))
		if err := s.stop(ctx, old); err != nil {
			return err
		}
	}
	switch s.release {
	case s.changeAt:
		s.changed = beats.Span{From: began, To: time.Now()}
		s.sleep(ctx, 10*time.Second) // the new grid shows
		s.settled = time.Now()
	case s.dropAt:
		s.droppedAt = time.Now()
	}
	return nil
}

// kill ends the replica that works, without a goodbye. Its supervisor starts it again.
func (s *stage) kill(ctx context.Context) error {
	middle := s.middleOfRun(ctx)
	s.sleep(ctx, time.Until(middle.at))
	p := s.hosts[middle.host]
	if err := p.Signal(trial.SigKill); err != nil {
		return err
	}
	s.sleep(ctx, restart)
	if err := s.start(ctx, middle.host); err != nil {
		return err
	}
	s.sleep(ctx, peace)
	return nil
}

// freeze stops the replica that works for a while.
func (s *stage) freeze(ctx context.Context) error {
	middle := s.middleOfRun(ctx)
	s.sleep(ctx, time.Until(middle.at))
	p := s.hosts[middle.host]
	if err := p.Signal(trial.SigStop); err != nil {
		return err
	}
	s.sleep(ctx, out)
	if err := p.Signal(trial.SigCont); err != nil {
		return err
	}
	s.sleep(ctx, peace)
	return nil
}

// storeAway stops the store, and starts it again with its data.
func (s *stage) storeAway(ctx context.Context) error {
	from := time.Now()
	if err := s.store.down(); err != nil {
		return err
	}
	s.sleep(ctx, out-time.Since(from))
	if err := s.store.up(ctx); err != nil {
		return err
	}
	s.storeGone = beats.Span{From: from, To: time.Now()}
	s.sleep(ctx, 2*peace)
	return nil
}

// recreate stops the only replica, and starts it again two seconds after its end. The first time it makes it the only one.
func (s *stage) recreate(ctx context.Context) error {
	if other := s.hosts[1]; !other.HasExited() {
		if err := s.stop(ctx, other); err != nil {
			return err
		}
		s.sleep(ctx, peace)
	}
	middle := s.middleOfRun(ctx)
	s.sleep(ctx, time.Until(middle.at))
	from := time.Now()
	if err := s.stop(ctx, s.hosts[0]); err != nil {
		return err
	}
	s.sleep(ctx, recreate)
	if err := s.start(ctx, 0); err != nil {
		return err
	}
	s.down = append(s.down, beats.Span{From: from, To: time.Now()})
	s.sleep(ctx, peace)
	return nil
}

// middle is a moment in the middle of a long run, and the host that works.
type middle struct {
	at   time.Time
	host int
}

// middleOfRun waits for the begin of the next long run, for a slot and a half. If none begins, the moment is now, and
// the host is the one that ran the last run of any job.
func (s *stage) middleOfRun(ctx context.Context) middle {
	from := time.Now()
	for time.Since(from) < 6*time.Second && ctx.Err() == nil {
		for _, a := range s.news() {
			if host := s.hostOf(a.Instance); a.Schedule == long && a.At.After(from) && host >= 0 {
				return middle{a.At.Add(inTheMiddle + s.some(400*time.Millisecond)), host}
			}
		}
		s.sleep(ctx, 25*time.Millisecond)
	}
	all := s.rec.Arrivals()
	for i := len(all) - 1; i >= 0; i-- {
		if host := s.hostOf(all[i].Instance); all[i].Schedule != ready && host >= 0 && !s.hosts[host].HasExited() {
			return middle{time.Now(), host}
		}
	}
	return middle{time.Now(), 0}
}

// some is a part of a time, to either side, from the same dice for each peer.
func (s *stage) some(d time.Duration) time.Duration {
	return time.Duration(s.dice.Int64N(2*int64(d)) - int64(d))
}

func newDice(run int) *rand.Rand { return rand.New(rand.NewPCG(33, uint64(run))) }

func (s *stage) sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		pause(ctx, d)
	}
}
