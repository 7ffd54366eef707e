package producer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/task"
)

// SchedulerConfig tunes a Scheduler.
type SchedulerConfig struct {
	// Horizon is how far ahead of its time a slot is pushed. Default 10s: two leases of 5s.
	Horizon time.Duration
	// Declared returns the schedules that this release's code or config declares. It returns nil if this release declares
	// none and leaves those of other releases alone. It is called when the instance begins to lead, and after Redeclare. Each
	// schedule is as [Schedule.AsStored] returns it, and is not changed afterwards: the leader keeps no copy.
	Declared func() []Schedule
	// Backlog is how many slots of a schedule are pushed while the first of them waits for a handler. Then new slots are
	// skipped until that one is claimed. Twice as many may wait. Default 50,000.
	Backlog int
	// Secret are, by type, the secret paths of payloads: the task of each slot gets those of its type.
	Secret map[string][]string
	// Archive knows the applied schedules: if Redis comes back empty, they are restored from there. The caller closes it. Default nil: none.
	Archive *archive.Source
	// Observer is told of what is pushed. Default: nobody is.
	Observer Observer
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
	// TracerProvider makes a span of each call that pushes slots. Default nil: none.
	TracerProvider trace.TracerProvider
}

// lateGrace is how late any slot may be pushed without counting as missed; see [term.late].
const lateGrace = time.Second

// longestPause is the longest wait between two tries while Redis is away.
const longestPause = 200 * time.Millisecond

// tidyEvery is the time between two removals of expired entries by the leader.
const tidyEvery = 30 * time.Second

// Scheduler is the CentralScheduler: while its instance leads, it pushes the slots of every schedule.
type Scheduler struct {
	q         *queue.Queue
	reg       *instance.Registry
	cfg       SchedulerConfig
	log       zerolog.Logger
	tracer    *tracing.Tracer // nil: none
	redeclare instance.Bell
	led       queue.Term // the last one
	insists   bool       // in that term a person told it to read the schedules again
	memory    memory     // of the last term
	progress  progress
	hearts    hearts
}

// NewScheduler returns a scheduler of a namespace. It does not talk to Redis. It refuses an invalid namespace with a
// [*task.FieldError].
func NewScheduler(rdb redis.UniversalClient, namespace string, cfg SchedulerConfig) (*Scheduler, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	reg, err := instance.NewRegistry(rdb, namespace)
	if err != nil {
		return nil, err
	}
	if cfg.Horizon <= 0 {
		cfg.Horizon = 10 * time.Second
	}
	if cfg.Backlog <= 0 {
		cfg.Backlog = defaultBacklog
	}
	return &Scheduler{
		q: q, reg: reg, cfg: cfg, log: cfg.Log, tracer: tracing.New(cfg.TracerProvider, namespace), redeclare: instance.NewBell(),
	}, nil
}

// Redeclare makes the leader read and compare the declared schedules again, and declare them though a newer instance of its
// release did. An instance that does not lead reads them when it leads next, and then yields to that one.
func (s *Scheduler) Redeclare() { s.redeclare.Ring() }

// Run pushes slots in every term of the session. It returns when the session drains or ends.
func (s *Scheduler) Run(session *instance.Session) error {
	ctx, stop := context.WithCancel(session.Context())
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(ctx, session) })
	defer watch.Wait()
	defer stop()
	s.recall(session)
	session.Lead(func(ctx context.Context, led task.Term) {
		s.begin(led)
		// Whether the gate is shut was decided when the term began, and only this leader opens it.
		t := &term{Scheduler: s, session: session, term: led, open: session.View().Open, back: session.View().Back, before: s.memory}
		err := t.run(ctx)
		s.remember(ctx, t, err)
		if err != nil && ctx.Err() == nil { // else the term is over, which was logged already
			s.progress.failed(err)
			s.log.Debug().Err(err).Msg("scheduling stopped: it begins again if this instance still leads")
		}
	})
	s.forget(session)
	return nil
}

// begin drops a request to declare again if a term is new: another leader may have declared since. Scheduling may begin several times in one
// term.
func (s *Scheduler) begin(led queue.Term) {
	if led == s.led {
		return
	}
	s.led, s.insists = led, false
	select {
	case <-s.redeclare:
	default:
	}
}

// term is one term of leadership.
type term struct {
	*Scheduler
	session *instance.Session
	term    queue.Term
	began   time.Time // by the clock of Redis, in whole milliseconds, before anything was declared
	back    time.Time // when an instance led again, if none had led before
	outage  time.Time // slots up to here came while no instance led; zero if there was no such time
	since   time.Time // when it began to take stock, until all slots that had come by then are pushed
	open    bool      // consumers may take work
	clock   store.Clock
	entries map[string]*entry
	plan    plan
	behind  []*entry // the entries that are behind, in the order of their turns
	version int64    // the version of the schedules that is known here
	whole   bool     // entries holds all schedules
	halves  bool     // Redis has only half of some schedule: take stock

	tookBack bool              // the runs of the dead were taken back, as far as possible
	before   memory            // the knowledge from before this term, until all schedules are read
	lacking  error             // why taking stock was incomplete; it is tried again
	aside    map[string]string // schedules that Redis refuses: the last run that each had then
	refused  bool              // a schedule was refused, and no step was made since

	bereft  bool // Redis came back empty, and this instance remembers no schedules
	regains bool // it looks, beside, for those that the archive knows

	yields   bool             // a newer release's schedules are in force
	askAgain <-chan time.Time // when to ask whether they still are; nil: no need
}

// run leads: it takes stock, opens the gate if no instance led before, and pushes until the term ends.
func (t *term) run(ctx context.Context) error {
	t.session.Reconnected() // all is read now, so an earlier reconnect does not matter
	if err := t.insist(ctx, t.regainDeclared); err != nil {
		return err
	}
	if err := t.insist(ctx, t.takeStock); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	var again <-chan time.Time // when to try again to take stock of what is lacking
	for tries := 0; ; {
		if t.whole && !t.regains {
			t.regains = true
			bereft := t.bereft
			beside.Go(func() { t.regain(ctx, bereft) })
		}
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
		case <-t.session.Schedules:
			if t.session.Reconnected() { // Redis may have lost what was pushed or changed last, in a failover for example
				err = t.insist(ctx, t.takeStock)
			} else {
				err = t.insist(ctx, t.refresh)
			}
		case <-t.redeclare:
			t.insists, t.yields = true, false
			err = t.insist(ctx, t.takeStock)
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

// longestAgain is the longest wait between two tries to restore or declare a schedule.
const longestAgain = 30 * time.Second

// insist calls fn until it succeeds, the term ends, or another try is useless.
func (t *term) insist(ctx context.Context, fn func(context.Context) error) error {
	t.progress.begin()
	for n := 0; ; n++ {
		attempt, done := t.progress.attempt(ctx, callLimit(t.session))
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
		// Giving up would stop every schedule, so whatever the error, keep trying and log it once. The same goes for a full
		// Redis: the slots wait here until it has room, and expired tasks must not be the reason that it has none.
		if n == 0 {
			t.log.Warn().Err(err).Msg("cannot schedule: trying again")
		}
		switch {
		case errors.Is(err, task.ErrFull):
			t.tidy(ctx)
		case errors.Is(err, store.ErrWrongType) && t.session.Mend(err):
			fn = t.takeStock // the content of the key is gone: restore what is known here
		}
		d := min(longestPause, 20*time.Millisecond<<min(n, 10))
		select {
		case <-time.After(d/2 + rand.N(d/2+1)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// upkeep is done now and then. It reads the clock again because a slot may be far ahead, and two clocks drift apart.
func (t *term) upkeep(ctx context.Context) {
	t.tidy(ctx)
	t.lookForStrangers(ctx)
	t.session.FindLost()
	if _, err := t.tick(ctx); err != nil && ctx.Err() == nil {
		t.log.Debug().Err(err).Msg("could not read the clock of redis")
	}
}

// lookForStrangers finds keys of another type that no instance has met: a command may need them.
func (t *term) lookForStrangers(ctx context.Context) {
	ctx, done := t.progress.attempt(ctx, callLimit(t.session))
	defer done()
	if names, err := t.q.OfAnotherType(ctx); err == nil && len(names) > 0 {
		t.session.Mend(nil)
	}
}

func (t *term) tidy(ctx context.Context) {
	ctx, done := t.progress.attempt(ctx, callLimit(t.session))
	defer done()
	if _, err := t.q.Tidy(ctx, t.session.Lease()); err != nil && ctx.Err() == nil {
		t.log.Debug().Err(err).Msg("could not tidy up")
	}
	if wrong, err := t.q.Recount(ctx); err != nil && ctx.Err() == nil {
		t.log.Debug().Err(err).Msg("could not recount running tasks")
	} else if wrong > 0 {
		t.log.Error().Int("counts", wrong).Msg("corrected the counts of running tasks: something else writes to onbeat's keys")
	}
}

// takeStock begins a term, and begins it again to declare anew, or when Redis may have lost its last writes. It reads all schedules,
// declares, deals with the slots missed while no instance led, and opens the gate. A schedule that cannot be restored or declared neither
// keeps the gate shut nor delays the other schedules: only the work behind the gate makes room in a full Redis. The leader
// retries it; see lacking.
func (t *term) takeStock(ctx context.Context) error {
	now, err := t.tick(ctx)
	if err != nil {
		return err
	}
	if t.began.IsZero() { // a later try keeps it: slots that were due since then were not missed
		t.began = now.Truncate(time.Millisecond)
	}
	if !t.open {
		t.outage = maxTime(before(t.returned()), now.Add(-t.forgives()))
	}
	t.since = now
	loss, lost := t.session.Loss()
	t.bereft = t.bereft || lost && loss.Kept.IsZero() && t.before.entries == nil
	was := t.lacking
	t.before, t.lacking = t.known(), nil
	inv, err := t.stock(ctx)
	if err != nil {
		return err
	}
	if t.whole { // else it would make what is lacking anew
		if err := t.announce(ctx, inv); err != nil {
			return err
		}
	}
	t.progress.made()
	if lost && t.whole {
		t.session.SettleLoss(loss)
	}
	if err := t.openGate(ctx); err != nil {
		return err
	}
	if t.lacking != nil && was == nil {
		t.log.Error().Err(t.lacking).Msg("could not restore or declare all schedules: trying again")
	}
	t.log.Info().Int("schedules", len(t.entries)).Int64("epoch", t.term.Epoch).Msg("scheduling")
	return nil
}

// returned returns when an instance led again. If the gate is still shut, that may not have been this leader. The slots
// since then were for the other leader to push, and it did not get to them: they are late, not missed.
func (t *term) returned() time.Time {
	if t.back.IsZero() {
		return t.began
	}
	return minTime(t.back, t.began)
}

// openGate lets consumers claim, once catchUp has dealt with the missed slots.
func (t *term) openGate(ctx context.Context) error {
	if t.open {
		return nil
	}
	if err := t.catchUp(ctx, t.outage); err != nil && !errors.Is(err, task.ErrFull) {
		return err
	}
	t.progress.made()
	t.takeBack(ctx)
	view, err := t.reg.Open(ctx, t.term)
	if err != nil {
		return err
	}
	t.open = true
	t.session.Opened(t.term.Epoch, view.Now)
	return nil
}

// announce declares. If that fails, the rest of the term goes on.
func (t *term) announce(ctx context.Context, inv *inventory) error {
	_, err := t.without(ctx, t.declare(ctx, inv))
	return err
}

// without takes in an error that scheduling can go on with, and returns any other.
func (t *term) without(ctx context.Context, err error) (lacks bool, _ error) {
	if err == nil || over(err) || store.Retryable(err) || ctx.Err() != nil {
		return false, err
	}
	t.lacking = err
	return true, nil
}

// takeBack takes back the runs of the dead, once a term. The gate opens when that is done, or after half a lease.
func (t *term) takeBack(ctx context.Context) {
	if t.tookBack {
		return
	}
	t.tookBack = true
	if err := t.session.TakeBack(ctx); err != nil && ctx.Err() == nil {
		t.log.Debug().Err(err).Msg("opening the gate before the leader has taken back all runs of lost instances")
	}
}

// tick reads the clock of Redis and returns it: the term's own clock is an estimate.
func (t *term) tick(ctx context.Context) (time.Time, error) {
	asked := time.Now()
	now, err := t.q.Now(ctx)
	if err != nil {
		return now, err
	}
	t.clock.Set(asked, time.Now(), now)
	return now, nil
}

// before returns the millisecond before a moment. Slots lie on whole milliseconds, so those up to it came before the
// moment.
func before(ms time.Time) time.Time { return ms.Add(-time.Millisecond) }
