package instance

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// lookSoon is the least time between two looks, however many messages say that somebody is silent.
const lookSoon = 20 * time.Millisecond

// notMonitor is the plan of an instance that is not the monitor.
const notMonitor = time.Duration(-1)

// post passes the plan of the last heartbeat to the monitor's goroutine: the time until the next look, or notMonitor. It does
// not block.
func (s *Session) post(d time.Duration) {
	select {
	case <-s.posts: // the goroutine has not taken the last one: this one is newer
	default:
	}
	s.posts <- d // only the keeper sends, so there is room
}

// lookIn returns the plan of a heartbeat for the monitor's goroutine.
func lookIn(b Beat) time.Duration {
	if !b.Monitor {
		return notMonitor
	}
	return b.Look
}

// monitor looks whether the leader lives, while this instance is the one that looks, until ctx ends. Heartbeats say whether it
// is. It shares nothing with the other parts of the instance but bells and the view.
func (m *Manager) monitor(ctx context.Context, s *Session) {
	w := monitoring{timer: time.NewTimer(0)}
	w.rest()
	defer w.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-s.posts:
			w.posted(d)
		case <-s.silent:
			if w.on {
				w.at(w.looked.Add(lookSoon))
			}
		case <-w.timer.C:
			w.planned = time.Time{}
			m.look(ctx, s, &w)
		}
	}
}

// monitoring is the state of the monitor's goroutine.
type monitoring struct {
	on      bool // this instance is the monitor
	timer   *time.Timer
	planned time.Time // when it looks next; zero: when it is told
	seen    Seen
	heard   time.Time // since when this instance had listened, when it last looked
	looked  time.Time // when it last looked
	leads   int64     // the generation that led then; 0: the view of the session knows better
}

// at plans a look, if none is planned before that.
func (w *monitoring) at(t time.Time) {
	if !w.planned.IsZero() && w.planned.Before(t) {
		return
	}
	w.planned = t
	w.timer.Reset(time.Until(t))
}

func (w *monitoring) rest() {
	w.timer.Stop()
	w.planned = time.Time{}
}

// posted applies the plan of a heartbeat. A planned look stays if it will confirm a suspicion, or comes soon: heartbeats can
// come more often than looks, and would put them off for ever.
func (w *monitoring) posted(d time.Duration) {
	if d < 0 {
		w.on, w.seen = false, Seen{}
		w.rest()
		return
	}
	w.on, w.leads = true, 0
	if w.seen.Alone.IsZero() && d > lookBusy {
		w.rest()
	}
	w.at(time.Now().Add(d))
}

// look looks once, and plans the next look. Earlier looks prove nothing once this instance's own connection was made anew.
func (m *Manager) look(ctx context.Context, s *Session, w *monitoring) {
	since := s.listening()
	if since != w.heard {
		w.seen, w.heard = Seen{}, since
	}
	listened := time.Duration(0)
	if !since.IsZero() {
		listened = time.Since(since)
	}
	w.looked = time.Now()
	call, done := context.WithTimeout(ctx, m.cfg.heartbeat())
	defer done()
	known := s.View()
	l, err := m.reg.Look(call, s.ID, s.Gen, cmp.Or(w.leads, known.LeaderGen), m.cfg.Lease, w.seen, listened)
	w.seen, w.leads = l.Seen, l.LeaderGen
	switch {
	case errors.Is(err, queue.ErrFenced):
		s.Doubt()
		return
	case err != nil: // the next heartbeat says when to look again
		return
	case l.Suspected:
		m.log.Warn().Str("suspect", known.Leader).Int("listeners", l.Listeners).Str("leader", l.Leader).Int64("epoch", l.Epoch).Msg("the leader shows no sign of life: another instance leads")
		if m.cfg.Observer != nil {
			m.cfg.Observer.LeaderSuspected()
		}
	}
	if l.Epoch != known.Epoch {
		s.Doubt() // only the keeper takes in views, so that none comes late
	}
	if w.on = l.Monitor; w.on && !l.Next.IsZero() {
		w.at(time.Now().Add(l.Next.Sub(l.Now)))
	}
}
