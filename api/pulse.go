package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
)

// pulse is the status in short, for whoever watches a namespace all the time: the title, the menu and the banner of the dashboard.
type pulse struct {
	// Away says that Redis does not answer, since when. The rest is what was known last.
	Away  bool      `json:"away,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Asked time.Time `json:"asked,omitzero"` // zero: nothing is known yet

	Wrong int   `json:"wrong"` // lines of the status that are not warnings
	Bad   int   `json:"bad"`   // schedules that do not do what they say
	Dead  int64 `json:"dead"`  // tasks
	// Stopped is why nothing runs: no instance leads, or all are paused.
	Stopped *admin.Trouble `json:"stopped,omitempty"`
}

// stops are the kinds of trouble that hold up everything. A pause without a name is that of all instances.
var stops = []string{admin.NoLeader, admin.LeaderIdle, string(admin.Paused)}

func pulseOf(s *admin.Status) pulse {
	p := pulse{Asked: s.Asked, Wrong: s.Counts.Wrong, Bad: s.Counts.Bad, Dead: s.Counts.Dead}
	i := slices.IndexFunc(s.Trouble, func(t admin.Trouble) bool {
		return slices.Contains(stops, t.Kind) && (t.Kind != string(admin.Paused) || t.Name == "")
	})
	if i >= 0 {
		p.Stopped = &s.Trouble[i]
	}
	return p
}

// How often the hub asks for the status. If the answers take long it asks less often: they take a twentieth of the time at most.
const (
	pulseTime  = 3 * time.Second
	pulseShare = 20
)

// feel asks for the status again and again, once for all listeners that want it, until ctx ends.
func (h *hub) feel(ctx context.Context) {
	for wait := time.Duration(0); pause(ctx, wait) == nil; {
		if wait = pulseTime; !h.wanted() {
			wait = leastPause
			continue
		}
		began := time.Now()
		aged := context.WithValue(ctx, ageKey{}, pulseTime/2)
		if s, err := store.Within(ctx, func() (admin.Status, error) { return h.activity.Status(aged) }); err == nil {
			h.change(ctx, func(p *pulse) bool {
				away, since := p.Away, p.Since
				*p = pulseOf(&s)
				p.Away, p.Since = away, since
				return true
			})
		}
		wait = max(wait, pulseShare*time.Since(began))
	}
}

// wanted reports whether a listener wants the status.
func (h *hub) wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.status {
			return true
		}
	}
	return false
}

// tell tells the listeners that Redis is away, or back.
func (h *hub) tell(ctx context.Context, away bool) {
	h.change(ctx, func(p *pulse) bool {
		if p.Away == away {
			return false
		}
		p.Away, p.Since = away, time.Time{}
		if away {
			p.Since = time.Now().UTC()
		}
		return true
	})
}

// change changes the pulse and sends it to all listeners, if fn says so.
func (h *hub) change(ctx context.Context, fn func(*pulse) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || !fn(&h.pulse) { // another reader may have begun
		return
	}
	for l := range h.listeners {
		l.hear(h.pulse)
	}
}

// hear takes a pulse. Only the newest counts.
func (l *listener) hear(p pulse) {
	select {
	case <-l.pulses:
	default:
	}
	l.pulses <- p
}

// Words of a stream about Redis, in comments.
const (
	wordAway = "redis does not answer; the stream goes on when it does"
	wordBack = "redis answers again"
)

// pulse sends a pulse to a client that asked for it, and to every client a comment when Redis goes away or comes back.
func (t *tap) pulse(p pulse, asked bool) error {
	text := ""
	if p.Away != t.away {
		t.away = p.Away
		text = ": " + wordBack + "\n\n"
		if p.Away {
			text = ": " + wordAway + "\n\n"
		}
	}
	if asked {
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		text += "event: status\ndata: " + string(data) + "\n\n"
	}
	if text == "" {
		return nil
	}
	return t.write(text)
}
