package instance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Manager is an InstanceManager: it keeps one instance registered. The caller runs it once.
type Manager struct {
	rdb redis.UniversalClient
	reg *Registry
	q   *queue.Queue
	cfg Config
	log zerolog.Logger

	// These fields go to Redis when the instance registers again.
	gen    int64     // its last generation
	order  int64     // the order of its release
	seen   time.Time // the clock of Redis when Redis last answered a heartbeat
	led    bool      // an instance led then, and the gate was open
	proven bool      // the instance has waited for MinReady before

	stoodDown time.Time     // when the instance last stood down
	rest      time.Duration // for how long it rested then

	deaf int // how many heartbeats in a row found no listener on the instance's own channel

	lamented time.Time // when the instance last logged that Redis refuses it

	stop    context.CancelFunc      // ends Run, as the caller's context does
	current atomic.Pointer[Session] // the last session, for Unready
	over    atomic.Bool             // Run has returned
	joined  atomic.Bool             // it was ready

	claims claims // over all sessions

	mending sync.Mutex
	mended  time.Time // when keys of another type were last looked for

	recovering chan struct{}       // held by the goroutine that recovers generations
	later      map[int64]time.Time // generations with records that only another release can read -> when to try again
}

// New returns the manager of an instance of a namespace. It does not talk to Redis. It returns the error of [Config.Validate] if
// cfg is invalid, and a [*task.FieldError] for a namespace that is.
func New(rdb redis.UniversalClient, namespace string, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	log := cfg.Log.With().Str("instance", cfg.ID).Logger()
	return &Manager{
		rdb: q.Redis(), reg: registryOf(q), q: q, cfg: cfg, log: log,
		recovering: make(chan struct{}, 1), later: map[int64]time.Time{},
	}, nil
}

// ID names the instance.
func (m *Manager) ID() string { return m.cfg.ID }

// Lease is the length of the instance's lease.
func (m *Manager) Lease() time.Duration { return m.cfg.Lease }

// Run registers the instance and calls serve with the session, and registers again with a new session each time the lease was
// lost, until ctx ends or a person asks the instance to drain (see [Registry.AskToDrain]). Then Run resigns, so that leadership moves at once; keeps the lease until serve returns; and
// deregisters. Serve must return soon after the session's context has ended. Once [Session.Draining] is closed, it must return
// when it has nothing more to finish.
//
// Run waits while Redis cannot be reached, at start too. It returns the error of serve, or nil. If Redis refuses the user
// from the start, it returns [task.ErrDenied] with the missing rights. If Redis refuses the user later, Run logs that and
// waits, because an operator may put the password right: such a slip must not end an instance.
func (m *Manager) Run(ctx context.Context, serve func(*Session) error) error {
	defer m.over.Store(true)
	ctx, m.stop = context.WithCancel(ctx)
	defer m.stop()
	if err := m.mayAll(ctx); err != nil {
		return err
	}
	for {
		s, err := m.join(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return m.named(ctx, err)
		}
		lost, err := m.session(ctx, s, serve)
		if err != nil || !lost {
			return m.named(ctx, err)
		}
	}
}

// join registers the instance, however long Redis takes to answer.
func (m *Manager) join(ctx context.Context) (*Session, error) {
	var b backoff
	for {
		// A call that is under way when ctx ends may take up to a lease more: if it registers, the instance must deregister.
		call, done := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Lease)
		unhook := context.AfterFunc(ctx, func() { time.AfterFunc(m.cfg.heartbeat(), done) })
		asked := time.Now()
		gen, order, v, err := m.reg.Register(call, m.cfg, Past{m.gen, m.order, m.seen, m.led, m.cfg.Order.known()})
		unhook()
		done()
		switch {
		case err == nil:
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			m.gen, m.order = gen, order
			m.cfg.Order.note(order)
			s := newSession(m.cfg.ID, gen, m.cfg.Release)
			s.claimed = &m.claims
			s.lease, s.takeBack, s.mend, s.observer = m.cfg.Lease, m.takeBackNow, m.mend, m.cfg.Observer
			s.trust(asked.Add(m.cfg.Lease - m.cfg.margin()))
			m.heard(s, v)
			s.see(v)
			m.current.Store(s)
			m.log.Info().Int64("generation", gen).Str("release", m.cfg.Release).Msg("registered")
			m.obey(ctx, v)
			if ctx.Err() != nil {
				m.leave(s)
				s.end(ErrLeft)
				return nil, context.Cause(ctx)
			}
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, store.ErrWrongType):
			m.mend(ctx, err) // it looks once a second at most, so it may do nothing now; the loop tries again
		case errors.Is(err, task.ErrDenied) && m.gen > 0:
			m.lament(ctx, err)
		case !store.Retryable(err) && !errors.Is(err, task.ErrFull):
			return nil, err
		}
		if b.tries == 0 {
			m.log.Warn().Err(err).Msg("waiting for redis")
		}
		if !pause(ctx, b.next(m.cfg.heartbeat())) {
			return nil, context.Cause(ctx)
		}
	}
}

// lamentEvery is how often an instance logs that Redis refuses it.
const lamentEvery = time.Minute

// lament logs as an error, once a minute, that Redis refuses an instance that it accepted before, and which rights are
// missing.
func (m *Manager) lament(ctx context.Context, err error) {
	if time.Since(m.lamented) < lamentEvery {
		return
	}
	m.lamented = time.Now()
	m.log.Error().Err(m.named(ctx, err)).Msg("redis refuses this instance: it claims nothing, and tries again until redis lets it in")
}

// session runs one session from registration to its end. It reports whether the lease was lost: then the caller registers again.
func (m *Manager) session(ctx context.Context, s *Session, serve func(*Session) error) (again bool, err error) {
	background, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	var helpers sync.WaitGroup
	helpers.Go(func() { m.listen(background, s) })
	helpers.Go(func() { m.monitor(background, s) })
	helpers.Go(func() { m.takeBack(background, s.orphans) })
	helpers.Go(func() { m.warnOfEviction(background) })
	helpers.Go(func() { m.findLost(background, s) })
	go func() { served <- serve(s) }()

	lost, err := m.keep(ctx, s, served)
	stop()
	helpers.Wait()
	again = lost && err == nil && ctx.Err() == nil
	if !again { // else the next registration declares this generation dead
		m.leave(s)
	}
	s.end(ErrLeft)
	return again, err
}

// leave deregisters. It uses a context of its own, because the caller's has ended.
func (m *Manager) leave(s *Session) {
	ctx, done := context.WithTimeout(context.Background(), min(m.cfg.Lease, 2*time.Second))
	defer done()
	if _, err := m.reg.Deregister(ctx, s.ID, s.Gen); err != nil {
		m.log.Warn().Err(err).Msg("could not deregister: the lease will run out by itself")
		return
	}
	m.log.Info().Msg("deregistered")
}
