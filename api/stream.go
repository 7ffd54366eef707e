package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// What streams may take.
const (
	mostListeners  = 256              // streams at once
	mostCatchingUp = 16               // of them, those that read what they missed
	behindAtMost   = 256              // events that a listener may be behind before it is dropped
	catchUpTime    = 30 * time.Second // until a client has to come back for the rest of what it missed
	heartbeatTime  = 15 * time.Second // between two signs of life
	streamWrite    = 10 * time.Second // until an event is taken
	streamRetry    = 2 * time.Second  // what a client waits before it comes back
	placeTime      = 2 * time.Second  // until it is known after which event a stream begins
)

var errListeners = &refusal{http.StatusServiceUnavailable, "listeners", "too many streams of events", "try again later"}

// errTooSlow ends a stream whose client holds up others.
var errTooSlow = errors.New("too slow")

// stream sends events as they happen: server-sent events, each with its ID, so that a client that comes back gets what it
// missed. All streams of a process share one reader of Redis.
type stream struct {
	hub       *hub
	catch     *places
	heartbeat time.Duration
	catchTime time.Duration
}

func newStream(events admin.Activity) *stream {
	return &stream{hub: newHub(events), catch: newPlaces(mostCatchingUp, 0), heartbeat: heartbeatTime, catchTime: catchUpTime}
}

// Close ends all streams. A client that comes back finds another process, or this one started anew.
func (s *stream) Close() { s.hub.close() }

// streamed lets the stream of events answer those that ask for it in place of a page.
func (s *Server) streamed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch who := identityOf(r.Context()); {
		case !isStream(r):
			next.ServeHTTP(w, r)
		case !who.Role.May(Viewer):
			problem(w, http.StatusForbidden, &refusal{http.StatusForbidden, "forbidden", whom(&who) + " may not do this", "it needs the role viewer"})
		default:
			s.stream.ServeHTTP(w, r)
		}
	})
}

// ServeHTTP sends events until the client leaves, reads too slowly, or the stream is closed. Last-Event-ID, or ?after=, says
// after which event; without one it begins with the next. ?event= names the kinds to send, by default all. ?status=true sends
// the [pulse] too, every few seconds.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	from, ok := parsePlace(after)
	if !ok {
		problem(w, http.StatusBadRequest, &task.FieldError{Field: "after", Value: after, Reason: "not the ID of an event", Hint: "leave it out to begin with the next event"})
		return
	}
	status, _ := strconv.ParseBool(r.URL.Query().Get("status"))
	l, ok := s.hub.join(identityOf(r.Context()).Name, status)
	if !ok {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "5")
		problem(w, errListeners.status, errListeners)
		return
	}
	defer s.hub.leave(l)
	t := &tap{w: w, rc: http.NewResponseController(w), kinds: r.URL.Query()["event"], sent: from}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
	if after == "" {
		placed(r.Context(), l)
	}
	if t.write(fmt.Sprintf("retry: %d\n: following\n\n", streamRetry.Milliseconds())) == nil {
		s.follow(r.Context(), l, t, after != "")
	}
}

// placed waits until it is known after which event a stream begins: the client may take its first line to mean that it hears of all that
// comes after it. While Redis is away it hears soon that it has to wait.
func placed(ctx context.Context, l *listener) {
	wait := time.NewTimer(placeTime)
	defer wait.Stop()
	select {
	case <-l.known:
	case <-l.gone:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// follow sends what the client has missed, then each event as it comes.
func (s *stream) follow(ctx context.Context, l *listener, t *tap, resumes bool) {
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	known, events := l.known, (<-chan admin.Event)(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.gone:
			_ = t.write(": closing\n\n")
			return
		case <-known: // from here on the hub sends what is new; what was before, this stream reads itself
			known, events = nil, l.events
			if !resumes {
				t.sent = l.at
			} else if s.catchUp(ctx, l, t) != nil {
				return
			}
			continue
		case e := <-events:
			if t.event(e) != nil {
				return
			}
		case p := <-l.pulses:
			if t.pulse(p, l.status) != nil {
				return
			}
		case <-beat.C:
			if !isStillIn(ctx) || t.write(": alive\n\n") != nil {
				return
			}
		}
	}
}

// catchUp sends the events up to the place at which the hub began to send to this listener. If the client takes them too slowly, the
// stream ends, for others wait for the turn; the client goes on from the last event that it took. A sender has as many turns at once as it
// leaves to others.
func (s *stream) catchUp(ctx context.Context, l *listener, t *tap) error {
	if err := s.turn(ctx, l); err != nil {
		return err
	}
	defer s.catch.leave(l.who)
	began := time.Now()
	for wait := leastPause; t.sent.less(l.at); wait = min(2*wait, longestPause) {
		err := s.hub.activity.Follow(ctx, t.sent.String(), func(e admin.Event) error {
			select {
			case <-l.gone:
				return errDone
			default:
			}
			if at, _ := parsePlace(e.ID); l.at.less(at) {
				return errDone
			}
			err := t.event(e)
			if err == nil && time.Since(began) > s.catchTime {
				err = errTooSlow
			}
			if err != nil {
				t.broken = true
				return err
			}
			if !t.sent.less(l.at) {
				return errDone
			}
			return nil
		})
		if t.broken || ctx.Err() != nil {
			return err
		}
		if err == errDone { //nolint:errorlint // our own, as it was returned above
			return nil
		}
		if pause(ctx, wait) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// turn waits for a turn to catch up.
func (s *stream) turn(ctx context.Context, l *listener) error {
	wait, done := context.WithCancel(ctx)
	defer done()
	go func() {
		select {
		case <-l.gone:
			done()
		case <-wait.Done():
		}
	}()
	return s.catch.enter(wait, l.who)
}

// tap is where a stream goes.
type tap struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	kinds  []string
	sent   place // of the last event
	away   bool  // it was told that Redis is
	broken bool
}

// event sends an event, unless it was sent before.
func (t *tap) event(e admin.Event) error {
	at, _ := parsePlace(e.ID)
	if !t.sent.less(at) {
		return nil
	}
	t.sent = at
	if len(t.kinds) > 0 && !slices.Contains(t.kinds, e.Event) {
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return t.write("id: " + e.ID + "\ndata: " + string(data) + "\n\n")
}

func (t *tap) write(text string) error {
	_ = t.rc.SetWriteDeadline(time.Now().Add(streamWrite))
	if _, err := t.w.Write([]byte(text)); err != nil {
		return err
	}
	return t.rc.Flush()
}

// place is the ID of an event: its milliseconds, and its number among those of the same.
type place struct{ ms, n uint64 }

// parsePlace reads an ID. "" is before all.
func parsePlace(id string) (p place, ok bool) {
	if id == "" {
		return p, true
	}
	ms, n, both := strings.Cut(id, "-")
	var err, errN error
	p.ms, err = strconv.ParseUint(ms, 10, 64)
	if both {
		p.n, errN = strconv.ParseUint(n, 10, 64)
	}
	return p, err == nil && errN == nil
}

func (p place) less(q place) bool { return p.ms < q.ms || p.ms == q.ms && p.n < q.n }

func (p place) String() string { return fmt.Sprintf("%d-%d", p.ms, p.n) }
