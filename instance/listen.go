package instance

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
)

// listen turns messages on the wake channels into bells until ctx ends. Messages can be lost. The next heartbeat brings
// the same news, so a message only makes it faster.
func (m *Manager) listen(ctx context.Context, s *Session) {
	heard, refused := false, false
	for m.listenOnce(ctx, s, &heard) {
		refused = s.listening().IsZero() && (refused || m.refusesToListen(ctx))
	}
}

// listenOnce listens until ctx ends, or until the instance must subscribe anew: then it returns true. It gives Redis a lease to
// confirm the subscription. The client would wait for ever after a refusal.
func (m *Manager) listenOnce(ctx context.Context, s *Session, heard *bool) (again bool) {
	s.listens.Store(nil)
	late := time.NewTimer(m.cfg.Lease)
	defer late.Stop()
	sub := m.rdb.Subscribe(ctx, m.reg.keys.Wake, m.reg.keys.WakeOf(s.ID))
	// An idle connection is probed rarely: every probe is a command that Redis has to answer.
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute))
	defer func() {
		_ = sub.Close()
		for range messages { //nolint:revive // a message that is not read would keep its goroutine for a minute
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.tune:
			return true
		case <-late.C:
			if s.listening().IsZero() {
				return true
			}
		case msg, ok := <-messages:
			if !ok {
				return false
			}
			switch v := msg.(type) {
			case *redis.Subscription: // also after the connection broke: messages sent meanwhile were lost
				if v.Channel == m.reg.keys.Wake {
					if *heard {
						s.again.Store(true)
						s.unsure.Store(true)
						s.claims.Store(true)
					}
					*heard = true
				}
				s.listened()
				s.wake(0)
				s.Schedules.Ring()
				s.beat.Ring()
			case *redis.Message:
				m.hear(ctx, s, v)
			}
		}
	}
}

// refusesToListen reports, and logs, that the user may not subscribe. If Redis does not answer at all, the heartbeats say so.
func (m *Manager) refusesToListen(ctx context.Context) bool {
	call, done := context.WithTimeout(ctx, m.cfg.heartbeat())
	defer done()
	missing, err := store.Within(call, func() ([]string, error) { return m.q.Missing(call, queue.AsInstance, m.cfg.Durable) })
	if err != nil || len(missing) == 0 {
		return false
	}
	m.log.Error().Err(lacks(missing)).Msg("redis refuses to let this instance listen: due tasks may be late, and a leader that crashes is found when its lease runs out")
	return true
}

// listened notes that the instance listens from now on.
func (s *Session) listened() {
	now := time.Now()
	s.listens.Store(&now)
}

// listening returns since when the instance has listened without a break; zero: it does not yet.
func (s *Session) listening() time.Time {
	if since := s.listens.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// deafBeats is after how many heartbeats without a listener on its own channel an instance says so.
const deafBeats = 3

// tuned takes in whether Redis has a listener on this instance's channel. The subscription may be on another node than the
// scripts, for example after a failover of a cluster, so the instance subscribes anew, once. If that does not help, no
// suspicion can be drawn from listeners here.
func (m *Manager) tuned(s *Session, b Beat) {
	since := s.listening()
	switch {
	case b.Listens > 0:
		m.deaf = 0
		return
	case m.deaf >= deafBeats || since.IsZero() || time.Since(since) < m.cfg.heartbeat():
		return
	case b.Listens < 0:
		m.deaf = deafBeats
	default:
		m.deaf++
	}
	switch m.deaf {
	case 1:
		s.tune.Ring()
	case deafBeats:
		m.log.Warn().Bool("allowed", b.Listens == 0).Msg("redis does not show who listens (PUBSUB NUMSUB): a leader that crashes is found when its lease runs out")
	}
}

func (m *Manager) hear(ctx context.Context, s *Session, msg *redis.Message) {
	switch msg.Payload {
	case "leader":
		s.beat.Ring()
		s.wake(0)
	case "lost", "asked": // a generation was lost, or a person asks something: the heartbeat says what
		s.beat.Ring()
	case "silent": // a message found no listener
		s.silent.Ring()
	case "lanes":
		s.wake(0)
	case "schedules":
		s.Schedules.Ring()
	case "cancel":
		call, done := context.WithTimeout(ctx, m.cfg.heartbeat())
		defer done()
		if list, err := m.reg.Cancels(call); err == nil {
			s.cancelRuns(list)
		}
	default:
		if ms, err := strconv.ParseInt(msg.Payload, 10, 64); err == nil {
			s.wake(ms)
		}
	}
}
