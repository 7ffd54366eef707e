package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/task"
)

// Limits of streams.
const (
	mostListeners  = 256              // streams at once
	mostCatchingUp = 16               // of them, those that read what they missed
	behindAtMost   = 256              // events that a listener may be behind before it is dropped
	catchUpPage    = 500              // events that are read at once
	catchUpTime    = 30 * time.Second // until a client has to come back for the rest of what it missed
	heartbeatTime  = 15 * time.Second // between two signs of life
	streamWrite    = 10 * time.Second // until an event is taken
	streamRetry    = 2 * time.Second  // until a client comes back
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
	from, err := s.begins(r.Context(), after)
	if err != nil {
		problem(w, http.StatusBadRequest, err)
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

// begins reads after which event a stream begins. Only the namespace knows whether it has a partition.
func (s *stream) begins(ctx context.Context, after string) (split.Cursor, error) {
	from, err := split.ParseCursor(after)
	if err == nil && from.Most() > 0 {
		ctx, done := context.WithTimeout(ctx, placeTime)
		defer done()
		if _, err = s.hub.activity.Events(ctx, admin.EventQuery{After: after, Limit: 1}); !errors.Is(err, task.ErrInvalid) {
			err = nil
		}
	}
	if err != nil {
		return from, &task.FieldError{Field: "after", Value: after, Reason: "not the ID of an event", Hint: "leave it out to begin with the next event"}
	}
	return from, nil
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
		case <-known: // from here on the hub sends new events; this stream reads the older ones itself
			known, events = nil, l.events
			if !resumes {
				t.sent = l.at
				if t.write("id: "+t.sent.String()+"\n\n") != nil { // a client that comes back before the first event loses none
					return
				}
			} else if s.catchUp(ctx, l, t) != nil {
				return
			}
			continue
		case e := <-events:
			p := split.PlaceOf(e.ID).Partition
			if t.lacks && l.at.In(p).Compare(t.sent.In(p)) > 0 {
				return // its partition was away when the client caught up: it comes back for what it missed there
			}
			if t.event(&e) != nil {
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
	ctx, done := l.while(ctx)
	defer done()
	if err := s.catch.enter(ctx, l.who); err != nil {
		return err
	}
	defer s.catch.leave(l.who)
	began, read := time.Now(), t.sent
	for wait := leastPause; ; {
		page, err := s.hub.activity.Events(ctx, admin.EventQuery{After: read.String(), Limit: catchUpPage})
		if err != nil {
			if err := pause(ctx, wait); err != nil {
				return err
			}
			wait = min(2*wait, longestPause)
			continue
		}
		t.lacks = t.lacks || len(page.CouldNotAsk) > 0
		for i := range page.Items {
			e := &page.Items[i]
			if ctx.Err() != nil {
				return ctx.Err()
			}
			read = read.Past(split.PlaceOf(e.ID))
			if !l.at.Has(split.PlaceOf(e.ID)) {
				continue // the hub sends it
			}
			if err := t.event(e); err != nil {
				return err
			}
			if time.Since(began) > s.catchTime {
				return errTooSlow
			}
		}
		if page.Next == "" {
			return nil
		}
	}
}

// tap is where a stream goes.
type tap struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	kinds []string
	sent  split.Cursor
	lacks bool // a partition was away when it caught up
	away  bool // it was told that Redis is
}

// event sends an event, unless it was sent before. Its ID on the line is the cursor: with it a client that comes back loses none.
func (t *tap) event(e *admin.Event) error {
	if t.sent.Has(split.PlaceOf(e.ID)) {
		return nil
	}
	t.sent = t.sent.Past(split.PlaceOf(e.ID))
	if len(t.kinds) > 0 && !slices.Contains(t.kinds, e.Event) {
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return t.write("id: " + t.sent.String() + "\ndata: " + string(data) + "\n\n")
}

func (t *tap) write(text string) error {
	_ = t.rc.SetWriteDeadline(time.Now().Add(streamWrite))
	if _, err := t.w.Write([]byte(text)); err != nil {
		return err
	}
	return t.rc.Flush()
}
