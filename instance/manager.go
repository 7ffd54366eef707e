package instance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// Manager keeps one instance registered: an InstanceManager. It is run once.
type Manager struct {
	rdb redis.UniversalClient
	reg *Registry
	q   *queue.Queue
	cfg Config
	log zerolog.Logger

	// What it brings when it comes back.
	gen    int64     // the last generation it had
	order  int64     // of its release
	seen   time.Time // the clock of Redis when it last answered a heartbeat
	led    bool      // somebody led then, and the gate was open
	proven bool      // it has been ready for MinReady before

	stoodDown time.Time     // when it last did
	rest      time.Duration // for how long, then

	lamented time.Time // when it last said that Redis refuses it

	mending sync.Mutex
	mended  time.Time // when keys of another type were last looked for

	recovering chan struct{}       // held by whoever recovers generations
	later      map[int64]time.Time // generations that hold what only another release can read, until they are tried again
}

// New returns the manager of an instance. It refuses a bad config; it does not talk to Redis yet.
func New(q *queue.Queue, p queue.Partition, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	reg, err := NewRegistry(q.Redis(), p)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	log := cfg.Log.With().Str("instance", cfg.ID).Logger()
	return &Manager{
		rdb: q.Redis(), reg: reg, q: q, cfg: cfg, log: log,
		recovering: make(chan struct{}, 1), later: map[int64]time.Time{},
	}, nil
}

// ID names the instance.
func (m *Manager) ID() string { return m.cfg.ID }

// Lease is the length of the instance's lease.
func (m *Manager) Lease() time.Duration { return m.cfg.Lease }

// Run registers and calls serve with the stay, and with a new one each time the lease was lost, until ctx ends. Then
// it resigns, so that leadership moves at once; waits for serve to return, keeping the lease meanwhile; and
// deregisters. serve must return soon after the stay's context has ended, and, once [Stay.Draining] is closed, when it
// has nothing more to finish.
//
// Redis being out of reach is waited out, at start too. Run returns the error of serve, or nil; and
// [store.ErrDenied] if Redis refuses the user from the start, which names the rights that are missing. One that was
// registered once waits, and says so loudly, as its password may be put right: an operator's slip ends no instance.
func (m *Manager) Run(ctx context.Context, serve func(*Stay) error) error {
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
		lost, err := m.stay(ctx, s, serve)
		if err != nil || !lost {
			return m.named(ctx, err)
		}
	}
}

// join registers, however long Redis takes to answer.
func (m *Manager) join(ctx context.Context) (*Stay, error) {
	var b backoff
	for {
		// A call under way when ctx ends gets a moment to return: whoever was registered has to leave.
		call, done := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Lease)
		unhook := context.AfterFunc(ctx, func() { time.AfterFunc(m.cfg.heartbeat(), done) })
		asked := time.Now()
		gen, order, v, err := m.reg.Register(call, m.cfg, Past{m.gen, m.order, m.seen, m.led})
		unhook()
		done()
		switch {
		case err == nil:
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			m.gen, m.order = gen, order
			s := newStay(m.cfg.ID, gen, m.cfg.Release)
			s.lease, s.takeBack, s.mend = m.cfg.Lease, m.takeBackNow, m.mend
			s.trust(asked.Add(m.cfg.Lease - m.cfg.margin()))
			m.heard(s, v)
			s.see(v)
			m.log.Info().Int64("generation", gen).Str("release", m.cfg.Release).Msg("registered")
			if ctx.Err() != nil {
				m.leave(s)
				s.end(ErrLeft)
				return nil, context.Cause(ctx)
			}
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, store.ErrWrongType):
			m.mend(ctx, err) // it may have been a moment ago, and is tried again
		case errors.Is(err, store.ErrDenied) && m.gen > 0:
			m.lament(ctx, err)
		case !store.Retryable(err) && !errors.Is(err, store.ErrFull):
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

// lamentEvery is how often an instance says that Redis refuses it.
const lamentEvery = time.Minute

// lament says, loudly and now and then, that Redis refuses an instance that it let in before, and what is missing.
func (m *Manager) lament(ctx context.Context, err error) {
	if time.Since(m.lamented) < lamentEvery {
		return
	}
	m.lamented = time.Now()
	m.log.Error().Err(m.named(ctx, err)).Msg("redis does not let this instance in any more: it does nothing, and tries again, until that is put right")
}

// stay lives through one registration. It reports whether the lease was lost, in which case there is to be another.
func (m *Manager) stay(ctx context.Context, s *Stay, serve func(*Stay) error) (again bool, err error) {
	background, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	var helpers sync.WaitGroup
	helpers.Go(func() { m.listen(background, s) })
	helpers.Go(func() { m.takeBack(background, s.orphans) })
	helpers.Go(func() { m.warnOfEviction(background) })
	helpers.Go(func() { m.findLost(background, s) })
	go func() { served <- serve(s) }()

	lost, err := m.keep(ctx, s, served)
	stop()
	helpers.Wait()
	again = lost && err == nil && ctx.Err() == nil
	if !again { // else registering again says that this generation is over
		m.leave(s)
	}
	s.end(ErrLeft)
	return again, err
}

// leave deregisters, on a context of its own: the one that ended is why we leave.
func (m *Manager) leave(s *Stay) {
	ctx, done := context.WithTimeout(context.Background(), min(m.cfg.Lease, 2*time.Second))
	defer done()
	if _, err := m.reg.Deregister(ctx, s.ID, s.Gen); err != nil {
		m.log.Warn().Err(err).Msg("could not deregister: the lease will run out by itself")
		return
	}
	m.log.Info().Msg("deregistered")
}
