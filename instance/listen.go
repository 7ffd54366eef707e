package instance

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// listen turns messages on the wake channels into bells until ctx ends. Messages can be lost. The next heartbeat brings
// the same news, so a message only makes it faster.
func (m *Manager) listen(ctx context.Context, s *Session) {
	sub := m.rdb.Subscribe(ctx, m.reg.keys.Wake, m.reg.keys.WakeOf(s.ID))
	// An idle connection is probed rarely: every probe is a command that Redis has to answer.
	heard := false
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute))
	defer func() {
		_ = sub.Close()
		for range messages { //nolint:revive // a message that is not read would keep its goroutine for a minute
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case msg, ok := <-messages:
			if !ok {
				return
			}
			switch v := msg.(type) {
			case *redis.Subscription: // also after the connection broke: messages sent meanwhile were lost
				if v.Channel == m.reg.keys.Wake {
					if heard {
						s.again.Store(true)
						s.unsure.Store(true)
						s.claims.Store(true)
					}
					heard = true
				}
				s.wake(0)
				s.Schedules.Ring()
				s.beat.Ring()
			case *redis.Message:
				m.hear(ctx, s, v)
			}
		}
	}
}

func (m *Manager) hear(ctx context.Context, s *Session, msg *redis.Message) {
	switch msg.Payload {
	case "leader":
		s.beat.Ring()
		s.wake(0)
	case "lost", "asked": // a generation was lost, or a person asks something: the heartbeat says what
		s.beat.Ring()
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
