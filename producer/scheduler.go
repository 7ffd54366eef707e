package producer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// SchedulerConfig tunes a Scheduler.
type SchedulerConfig struct {
	// Horizon is how far ahead of its time a slot is pushed. Default 10s: two leases of 5s.
	Horizon time.Duration
	// Declared returns the schedules that this release's code or config declares, or nil if it declares none and lets
	// those of others be. It is called when the instance begins to lead, and after Redeclare.
	Declared func() []Schedule
	// Backlog is how many slots of a schedule are pushed while the first of them waits for a handler; then new ones are
	// skipped until it is taken. Twice as many may wait. Default 50,000.
	Backlog int
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
}

// lateGrace is the least that a slot may be pushed late and not be missed; see [tenure.late].
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
	progress  progress
}

// NewScheduler returns a scheduler.
func NewScheduler(q *queue.Queue, reg *instance.Registry, cfg SchedulerConfig) *Scheduler {
	if cfg.Horizon <= 0 {
		cfg.Horizon = 10 * time.Second
	}
	if cfg.Backlog <= 0 {
		cfg.Backlog = defaultBacklog
	}
	return &Scheduler{q: q, reg: reg, cfg: cfg, log: cfg.Log, redeclare: instance.NewBell()}
}

// Redeclare has the declared schedules read and compared again, if the instance leads; else that happens when it does.
func (s *Scheduler) Redeclare() { s.redeclare.Ring() }

// Run pushes slots in every term of the stay, and returns when the stay drains or ends.
func (s *Scheduler) Run(stay *instance.Stay) error {
	ctx, stop := context.WithCancel(stay.Context())
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(ctx, stay) })
	defer watch.Wait()
	defer stop()
	s.recall(stay)
	stay.Lead(func(ctx context.Context, term queue.Term) {
		// Whether the gate is shut was decided as the term began, and only this leader opens it.
		t := &tenure{Scheduler: s, stay: stay, term: term, open: stay.View().Open, back: stay.View().Back, before: s.memory}
		err := t.run(ctx)
		s.remember(ctx, t, err)
		if err != nil && ctx.Err() == nil { // else the term is over, which has been said already
			s.progress.failed(err)
			s.log.Warn().Err(err).Msg("scheduling stopped: it begins again if this instance still leads")
		}
	})
	s.forget(stay)
	return nil
}

// tenure is one term of leadership.
type tenure struct {
	*Scheduler
	stay    *instance.Stay
	term    queue.Term
	began   time.Time // by the clock of Redis, in whole milliseconds, before anything was declared
	back    time.Time // when somebody led again, if nobody did before
	outage  time.Time // slots up to here came while nobody led; zero if there was no such time
	since   time.Time // when it began to take stock, until all that had come by then is pushed
	open    bool      // consumers may take work
	clock   store.Clock
	entries map[string]*entry
	plan    plan
	behind  []*entry // those that are behind, in the order of their turns
	version int64    // of the schedules, as far as they are known
	whole   bool     // entries are all there are
	halves  bool     // of some there is only half in Redis: stock is to be taken

	tookBack bool              // the runs of the dead, as far as they could be
	before   memory            // what was known before all was read, until it has been
	lacking  error             // why stock could not be taken of everything; it is tried again
	aside    map[string]string // schedules that Redis refuses, as they were then: last run
	refused  bool              // one was, and since then no step was made

	yields   bool             // a newer release's schedules are in force
	askAgain <-chan time.Time // when to ask whether they still are; nil: no need
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
	var again <-chan time.Time // when to take stock of what is lacking
	for tries := 0; ; {
		switch {
		case t.lacking == nil:
			again, tries = nil, 0
		case again == nil:
			again = time.After(min(longestAgain, time.Second<<min(tries, 10)))
			tries++
		}
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
			err = t.insist(ctx, t.declaring())
		case <-again:
			again = nil
			t.tidy(ctx)
			err = t.insist(ctx, t.takeStock)
		case <-t.askAgain:
			err = t.insist(ctx, t.ask)
		case <-tidy.C:
			t.upkeep(ctx)
			err = t.insist(ctx, t.retryAside)
		}
		if err == nil && t.halves {
			err = t.insist(ctx, t.takeStock)
		}
		if err != nil {
			return err
		}
		d := t.wait()
		alarm.Reset(d)
		if !t.refused {
			t.progress.rest(d)
		}
	}
}

// longestAgain is between two tries to take stock of what could not be declared or restored.
const longestAgain = 30 * time.Second

// insist calls fn until it succeeds, the term ends, or trying again is of no use.
func (t *tenure) insist(ctx context.Context, fn func(context.Context) error) error {
	t.progress.begin()
	for n := 0; ; n++ {
		attempt, done := t.progress.attempt(ctx, callLimit(t.stay))
		err := fn(attempt)
		done()
		switch {
		case err == nil:
			if n > 0 {
				t.log.Info().Msg("scheduling goes on")
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case over(err):
			return err
		}
		t.progress.failed(err)
		// Whatever it is, giving up would stop every schedule: keep trying, and say so once. Redis that is full is the
		// same: the slots wait here until it has room, and what is kept past its time must not be why it has none.
		if n == 0 {
			t.log.Warn().Err(err).Msg("cannot schedule: trying again")
		}
		switch {
		case errors.Is(err, store.ErrFull):
			t.tidy(ctx)
		case errors.Is(err, store.ErrWrongType) && t.stay.Mend(err):
			fn = t.takeStock // what lay there is gone: what is known here is brought back
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
	t.lookForStrangers(ctx)
	t.stay.FindLost()
	if _, err := t.tick(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("could not read the clock of redis")
	}
}

// lookForStrangers finds keys of another type that no instance has come upon: a command may need them.
func (t *tenure) lookForStrangers(ctx context.Context) {
	ctx, done := t.progress.attempt(ctx, callLimit(t.stay))
	defer done()
	if names, err := t.q.OfAnotherType(ctx); err == nil && len(names) > 0 {
		t.stay.Mend(nil)
	}
}

func (t *tenure) tidy(ctx context.Context) {
	ctx, done := t.progress.attempt(ctx, callLimit(t.stay))
	defer done()
	if _, err := t.q.Tidy(ctx, t.stay.Lease()); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("could not tidy up")
	}
	if wrong, err := t.q.Recount(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("could not recount what runs")
	} else if wrong > 0 {
		t.log.Error().Int("counts", wrong).Msg("what runs of keys and types was counted anew: something else writes to onbeat's keys")
	}
}

// takeStock begins a term, and begins it again when Redis may have lost what was written last: it reads all schedules,
// declares, deals with what was missed while nobody led, and opens the gate. What cannot be restored or declared keeps
// neither the gate shut nor the other schedules waiting: a Redis that is full gets room only by the work behind the gate.
// It is tried again; see lacking.
func (t *tenure) takeStock(ctx context.Context) error {
	now, err := t.tick(ctx)
	if err != nil {
		return err
	}
	if t.began.IsZero() { // tried again: what was due since then was not missed
		t.began = now.Truncate(time.Millisecond)
	}
	if !t.open {
		t.outage = maxTime(before(t.returned()), now.Add(-t.forgives()))
	}
	t.since = now
	loss, lost := t.stay.Loss()
	was := t.lacking
	t.before, t.lacking = t.known(), nil
	stored, err := t.stock(ctx)
	if err != nil {
		return err
	}
	if t.whole { // else what is lacking would be made anew
		if err := t.announce(ctx, stored); err != nil {
			return err
		}
	}
	t.progress.made()
	if lost && t.whole {
		t.stay.SettleLoss(loss)
	}
	if err := t.openGate(ctx); err != nil {
		return err
	}
	if t.lacking != nil && was == nil {
		t.log.Error().Err(t.lacking).Msg("not all schedules could be restored or declared: trying again")
	}
	t.log.Info().Int("schedules", len(t.entries)).Int64("epoch", t.term.Epoch).Msg("scheduling")
	return nil
}

// returned is when somebody led again: not always this leader, if the gate is still shut. What came since then was another's
// to push, who did not come to it: it is late, and not missed.
func (t *tenure) returned() time.Time {
	if t.back.IsZero() {
		return t.began
	}
	return minTime(t.back, t.began)
}

// openGate lets consumers take work, once what was missed while nobody led has been dealt with.
func (t *tenure) openGate(ctx context.Context) error {
	if t.open {
		return nil
	}
	if err := t.catchUp(ctx, t.outage); err != nil && !errors.Is(err, store.ErrFull) {
		return err
	}
	t.progress.made()
	t.takeBack(ctx)
	if _, err := t.reg.Open(ctx, t.term); err != nil {
		return err
	}
	t.open = true
	t.stay.Look()
	return nil
}

// announce declares. What keeps it from that keeps it from nothing else.
func (t *tenure) announce(ctx context.Context, stored map[string]queue.Stored) error {
	_, err := t.without(ctx, t.declare(ctx, stored))
	return err
}

// without takes in the error of something that scheduling can go on without, and returns those that it cannot.
func (t *tenure) without(ctx context.Context, err error) (lacks bool, _ error) {
	if err == nil || over(err) || store.Retryable(err) || ctx.Err() != nil {
		return false, err
	}
	t.lacking = err
	return true, nil
}

// takeBack has the runs of the dead taken back, once a term: the gate opens when that is done, or after half a lease.
func (t *tenure) takeBack(ctx context.Context) {
	if t.tookBack {
		return
	}
	t.tookBack = true
	if err := t.stay.TakeBack(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn().Err(err).Msg("opening the gate before all runs of lost instances were taken back")
	}
}

// tick reads the clock of Redis, and returns what it read: the tenure's own clock is an estimate.
func (t *tenure) tick(ctx context.Context) (time.Time, error) {
	asked := time.Now()
	now, err := t.q.Now(ctx)
	if err != nil {
		return now, err
	}
	t.clock.Set(asked, time.Now(), now)
	return now, nil
}

// before is the millisecond before a moment: slots lie on whole milliseconds, so those up to it came before the moment.
func before(ms time.Time) time.Time { return ms.Add(-time.Millisecond) }

// put takes in a schedule as it lies in Redis now.
func (t *tenure) put(st queue.Stored) {
	if st.Half() && t.entries[st.Name] != nil {
		t.halves = true // what is known of it is kept: by that it is made whole
		return
	}
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
		if t.isAside(st) {
			e.next = time.Time{}
		}
		t.entries[st.Name] = e
		t.plan.fix(e)
		t.owe(e)
	}
}
