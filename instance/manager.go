package instance

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/queue"
)

// Manager keeps one instance registered: an InstanceManager. It is run once.
type Manager struct {
	rdb redis.UniversalClient
	reg *Registry
	q   *queue.Queue
	cfg Config
	log zerolog.Logger
	gen int64 // the last generation it had
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
	return &Manager{rdb: q.Redis(), reg: reg, q: q, cfg: cfg, log: log}, nil
}

// Registry is the registry the manager works with.
func (m *Manager) Registry() *Registry { return m.reg }

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
// [queue.ErrDenied] if Redis refuses the user.
func (m *Manager) Run(ctx context.Context, serve func(*Stay) error) error {
	for {
		s, err := m.join(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		lost, err := m.stay(ctx, s, serve)
		if err != nil || !lost {
			return err
		}
	}
}

// join registers, however long Redis takes to answer.
func (m *Manager) join(ctx context.Context) (*Stay, error) {
	var b backoff
	for {
		call, done := context.WithTimeout(ctx, m.cfg.Lease)
		asked := time.Now()
		gen, _, v, err := m.reg.Register(call, m.cfg, m.gen)
		done()
		switch {
		case err == nil:
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			m.gen = gen
			s := newStay(m.cfg.ID, gen, m.cfg.Release)
			s.trust(asked.Add(m.cfg.Lease - m.cfg.margin()))
			s.see(v)
			m.log.Info().Int64("generation", gen).Str("release", m.cfg.Release).Msg("registered")
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !queue.Retryable(err) && !errors.Is(err, queue.ErrFull):
			return nil, err
		}
		if b.tries == 0 {
			m.log.Warn().Err(err).Msg("waiting for redis")
		}
		if !b.wait(ctx, m.cfg.heartbeat()) {
			return nil, context.Cause(ctx)
		}
	}
}

// stay lives through one registration. It reports whether the lease was lost, in which case there is to be another.
func (m *Manager) stay(ctx context.Context, s *Stay, serve func(*Stay) error) (lost bool, err error) {
	background, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	listening := make(chan struct{})
	go func() { defer close(listening); m.listen(background, s) }()
	go func() { served <- serve(s) }()

	err = m.keep(ctx, s, served)
	lost = errors.Is(err, ErrLeaseLost)
	if lost {
		err = nil
	}
	stop()
	<-listening
	if !lost {
		m.leave(s)
	}
	s.end(ErrLeft)
	return lost && ctx.Err() == nil, err
}

// keep keeps the lease until serve has returned. When the lease is lost it ends the stay's context and waits for serve.
func (m *Manager) keep(ctx context.Context, s *Stay, served <-chan error) error {
	ready := m.readiness(ctx, s)
	beat := time.NewTimer(m.spread())
	defer beat.Stop()
	done := ctx.Done()
	var b backoff
	for {
		var err error
		select {
		case err := <-served:
			return err
		case <-done:
			done, ready = nil, nil
			err = m.resign(s)
		case <-ready:
			ready = nil
			err = m.call(s, "ready", m.reg.Ready)
			if err != nil && !errors.Is(err, queue.ErrFenced) {
				ready = again(m.cfg.heartbeat())
			}
		case <-beat.C:
			err = m.heartbeat(s)
		case <-s.beat:
			err = m.heartbeat(s)
		case <-s.expired():
			err = ErrLeaseLost
		}
		switch {
		case err == nil:
			b = backoff{}
			beat.Reset(m.spread())
		case errors.Is(err, queue.ErrFenced), errors.Is(err, ErrLeaseLost):
			m.log.Warn().AnErr("cause", err).Msg("lease lost: what was claimed is void")
			s.end(ErrLeaseLost)
			if err := <-served; err != nil {
				return err
			}
			return ErrLeaseLost
		default:
			if b.tries == 0 {
				m.log.Warn().Err(err).Msg("heartbeat failed")
			}
			beat.Reset(b.next(m.cfg.heartbeat()))
		}
	}
}

// again fires once, for a step that is to be tried once more.
func again(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// spread is the time to the next heartbeat, a little uneven so that a crowd started together spreads out.
func (m *Manager) spread() time.Duration {
	h := m.cfg.heartbeat()
	return h - time.Duration(rand.Int64N(int64(h/10)+1))
}

// readiness closes the channel when the check has passed and min_ready has gone by.
func (m *Manager) readiness(ctx context.Context, s *Stay) <-chan struct{} {
	ready := make(chan struct{})
	if m.cfg.ReadyCheck == nil && m.cfg.MinReady == 0 {
		close(ready)
		return ready
	}
	go func() {
		select {
		case <-time.After(m.cfg.MinReady):
		case <-s.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
		check, stop := context.WithCancel(s.ctx)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		var b backoff
		for m.cfg.ReadyCheck != nil {
			err := m.cfg.ReadyCheck(check)
			if err == nil {
				break
			}
			if b.tries == 0 {
				m.log.Warn().Err(err).Msg("not ready yet")
			}
			if !b.wait(check, m.cfg.heartbeat()) {
				return
			}
		}
		close(ready)
	}()
	return ready
}

// call makes one call of the registry that renews nothing, bounded by what is left of the lease.
func (m *Manager) call(s *Stay, what string, fn func(context.Context, string, int64) (View, error)) error {
	ctx, done := context.WithTimeout(s.ctx, m.cfg.heartbeat())
	defer done()
	v, err := fn(ctx, s.ID, s.Gen)
	if err != nil {
		return err
	}
	m.log.Info().Msg(what)
	m.see(s, v)
	return nil
}

func (m *Manager) see(s *Stay, v View) {
	before, after := s.see(v)
	switch {
	case after != 0 && after != before:
		m.log.Info().Int64("epoch", after).Msg("leads")
	case after == 0 && before != 0:
		m.log.Info().Str("leader", v.Leader).Msg("no longer leads")
	}
}

func (m *Manager) heartbeat(s *Stay) error {
	ctx, done := context.WithTimeout(s.ctx, m.cfg.heartbeat())
	defer done()
	asked := time.Now() // not after the reply: a slow reply must not lengthen the lease
	b, err := m.reg.Heartbeat(ctx, s.ID, s.Gen, m.cfg.Lease)
	if err != nil {
		return err
	}
	s.trust(asked.Add(m.cfg.Lease - m.cfg.margin()))
	m.see(s, b.View)
	s.cancelRuns(b.Cancel)
	if b.Overslept {
		s.wake(0)
	}
	for _, gen := range b.Orphans {
		if err := m.recover(s.ctx, gen); err != nil {
			m.log.Warn().Err(err).Int64("generation", gen).Msg("could not take back the tasks of a lost instance")
		}
	}
	return nil
}

// resign gives up leadership, so that it moves before anything else is done.
func (m *Manager) resign(s *Stay) error {
	err := m.call(s, "resigned", m.reg.Resign)
	s.drain()
	return err
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

// backoff spaces tries: doubling from a fiftieth of the cap, with jitter.
type backoff struct{ tries int }

func (b *backoff) next(limit time.Duration) time.Duration {
	d := min(limit, (limit/50)<<min(b.tries, 10))
	b.tries++
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

func (b *backoff) wait(ctx context.Context, limit time.Duration) bool {
	select {
	case <-time.After(b.next(limit)):
		return true
	case <-ctx.Done():
		return false
	}
}
