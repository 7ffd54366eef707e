package producer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
)

// SchedulerConfig tunes a Scheduler.
type SchedulerConfig struct {
	// Horizon is how far ahead of its time a slot is pushed. Default 10s: two leases of 5s.
	Horizon time.Duration
	// Declared returns the schedules that this release's code or config declares, or nil if it declares none and lets
	// those of others be. It is called when the instance begins to lead, and after Redeclare.
	Declared func() []Schedule
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
}

// lateGrace is how late a slot may be pushed and still be on time rather than missed: a pause of the leader's process
// is no downtime.
const lateGrace = time.Second

// longestPause is between two tries while Redis is away.
const longestPause = 200 * time.Millisecond

// tidyEvery is how often the leader removes what outlived its time.
const tidyEvery = 30 * time.Second

// Scheduler is the CentralScheduler: while its instance leads, it pushes the slots of every schedule.
type Scheduler struct {
	q         *queue.Queue
	reg       *instance.Registry
	cfg       SchedulerConfig
	log       zerolog.Logger
	redeclare instance.Bell
	memory    memory // of the last term
}

// NewScheduler returns a scheduler.
func NewScheduler(q *queue.Queue, reg *instance.Registry, cfg SchedulerConfig) *Scheduler {
	if cfg.Horizon <= 0 {
		cfg.Horizon = 10 * time.Second
	}
	return &Scheduler{q: q, reg: reg, cfg: cfg, log: cfg.Log, redeclare: instance.NewBell()}
}

// Redeclare has the declared schedules read and compared again, if the instance leads; else that happens when it does.
func (s *Scheduler) Redeclare() { s.redeclare.Ring() }

// Run pushes slots in every term of the stay, and returns when the stay drains or ends.
func (s *Scheduler) Run(stay *instance.Stay) error {
	s.recall(stay)
	stay.Lead(func(ctx context.Context, term queue.Term) {
		// Whether the gate is shut was decided as the term began, and only this leader opens it.
		t := &tenure{Scheduler: s, stay: stay, term: term, open: stay.View().Open}
		err := t.run(ctx)
		s.remember(ctx, t, err)
		switch {
		case ctx.Err() != nil: // the term is over, which has been said already
		case errors.Is(err, queue.ErrNotLeader), errors.Is(err, queue.ErrFenced):
			stay.Doubt()
		case err != nil:
			s.log.Error().Err(err).Msg("scheduling stopped")
		}
	})
	return nil
}

// tenure is one term of leadership.
type tenure struct {
	*Scheduler
	stay    *instance.Stay
	term    queue.Term
	began   time.Time // by the clock of Redis
	open    bool      // consumers may take work
	clock   queue.Clock
	entries map[string]*entry
	plan    plan
	version int64 // of the schedules, as far as they are known
	whole   bool  // entries are all there are

	refused bool             // a newer release's schedules are in force
	again   <-chan time.Time // when to ask whether they still are; nil: no need
}

// run leads: it takes stock, opens the gate if nobody led before, and pushes until the term ends.
func (t *tenure) run(ctx context.Context) error {
	t.stay.Reconnected() // whatever was before, all is read now
	if err := t.insist(ctx, t.takeStock); err != nil {
		return err
	}
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-alarm.C:
			err = t.insist(ctx, t.push)
		case <-t.stay.Schedules:
			if t.stay.Reconnected() { // Redis may have lost what was pushed or changed last: a failover, say
				err = t.insist(ctx, t.takeStock)
			} else {
				err = t.insist(ctx, t.refresh)
			}
		case <-t.redeclare:
			err = t.insist(ctx, t.declare)
		case <-t.again:
			err = t.insist(ctx, t.declare)
		case <-tidy.C:
			t.upkeep(ctx)
		}
		if err != nil {
			return err
		}
		alarm.Reset(t.wait())
	}
}

// insist calls fn until it succeeds, the term ends, or trying again is of no use.
func (t *tenure) insist(ctx context.Context, fn func(context.Context) error) error {
	for n := 0; ; n++ {
		call, done := context.WithTimeout(ctx, time.Minute)
		err := fn(call)
		done()
		switch {
		case err == nil:
			if n > 0 {
				t.log.Info().Msg("scheduling goes on")
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, queue.ErrNotLeader), errors.Is(err, queue.ErrFenced):
			return err
		}
		// Whatever it is, giving up would stop every schedule: keep trying, and say so once. Redis that is full is the
		// same: the slots wait here until it has room, and what is kept past its time must not be why it has none.
		if n == 0 {
			t.log.Warn().Err(err).Msg("cannot schedule: trying again")
		}
		if errors.Is(err, queue.ErrFull) {
			t.tidy(ctx)
		}
		d := min(longestPause, 20*time.Millisecond<<min(n, 10))
		select {
		case <-time.After(d/2 + rand.N(d/2+1)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// upkeep is done now and then. The clock is read again because a slot may be far ahead, and two clocks drift apart.
func (t *tenure) upkeep(ctx context.Context) {
	t.tidy(ctx)
	if err := t.tick(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("could not read the clock of redis")
	}
}

func (t *tenure) tidy(ctx context.Context) {
	if _, err := t.q.Tidy(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("could not tidy up")
	}
}

// takeStock begins a term, and begins it again when Redis may have lost what was written last: it declares, reads all
// schedules, deals with what was missed while nobody led, and opens the gate. A Redis that is full does not keep the
// gate shut: only the work behind it would ever make room.
func (t *tenure) takeStock(ctx context.Context) error {
	if err := t.tick(ctx); err != nil {
		return err
	}
	if t.began.IsZero() { // tried again: what was due since then was not missed
		t.began = t.clock.Now()
	}
	loss, lost := t.stay.Loss()
	if err := t.restore(ctx, t.known(), nil); err != nil {
		return err
	}
	declared := t.declare(ctx)
	if declared != nil && !errors.Is(declared, queue.ErrFull) {
		return declared
	}
	t.entries, t.plan, t.whole = map[string]*entry{}, nil, false
	version, err := t.q.Schedules(ctx, func(list []queue.Stored) error {
		for _, st := range list {
			t.put(st)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.version = version
	// A schedule changed while they were read may have come as two halves that do not belong together.
	if err := t.refresh(ctx); err != nil {
		return err
	}
	t.whole = true
	if lost {
		t.stay.SettleLoss(loss)
	}
	if !t.open {
		if err := t.catchUp(ctx, t.began); err != nil && !errors.Is(err, queue.ErrFull) {
			return err
		}
		if _, err := t.reg.Open(ctx, t.term); err != nil {
			return err
		}
		t.open = true
		t.stay.Look()
	}
	if declared != nil {
		return declared
	}
	t.log.Info().Int("schedules", len(t.entries)).Int64("epoch", t.term.Epoch).Msg("scheduling")
	return nil
}

// tick reads the clock of Redis.
func (t *tenure) tick(ctx context.Context) error {
	asked := time.Now()
	now, err := t.q.Now(ctx)
	if err != nil {
		return err
	}
	t.clock.Set(asked, time.Now(), now)
	return nil
}

// put takes in a schedule as it lies in Redis now.
func (t *tenure) put(st queue.Stored) {
	if old := t.entries[st.Name]; old != nil {
		old.next = time.Time{}
		t.plan.fix(old)
		delete(t.entries, st.Name)
	}
	e, err := newEntry(st)
	if err != nil {
		t.log.Error().Err(err).Msg("schedule left alone")
		return
	}
	if e != nil {
		t.entries[st.Name] = e
		t.plan.fix(e)
	}
}
