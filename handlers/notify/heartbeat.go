package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// HeartbeatType is the type of the tasks that send heartbeats. Every instance handles it.
const HeartbeatType = task.Own + "heartbeat"

// Heartbeat says how heartbeats are sent, and which dead-man's switch hears that the dispatcher keeps the beat. The heartbeats of
// schedules go where [producer.Heartbeat] says.
type Heartbeat struct {
	// URL gets a GET each Every, as long as an instance leads and the status has no trouble that stops it. It is a secret: nothing shows
	// it. Default "": the dispatcher sends none.
	URL string
	// Env are the environment variables that the URL was made of, by name. No error shows their values.
	Env map[string]string
	// Every is the time between two. Default 1m.
	Every time.Duration
	// HTTP says how all heartbeats are sent, also those of schedules. Its PassEnv are the variables to which URLs of schedules may refer,
	// and its Timeout is at most 10s here.
	HTTP handlers.HTTPConfig
}

// The bounds of Every, and of one request.
const (
	leastEvery  = 10 * time.Second
	mostEvery   = 24 * time.Hour
	beatTimeout = 10 * time.Second
)

// signalTimeout is how long a heartbeat of a schedule takes at most, and silence how long its host is left alone after that.
const (
	signalTimeout = 3 * time.Second
	silence       = 15 * time.Second
)

// Validate refuses what could not be used. No error shows the URL.
func (h Heartbeat) Validate() error {
	var list []error
	if h.URL != "" {
		list = append(list, (&Target{URL: h.URL}).CheckURL())
	}
	if h.Every != 0 && (h.Every < leastEvery || h.Every > mostEvery) {
		list = append(list, refuse("every", h.Every.String(), "out of range", "from 10s to 24h"))
	}
	return wording.Join(list...)
}

func (h Heartbeat) withDefaults() Heartbeat {
	h.Every = cmp.Or(h.Every, time.Minute)
	if h.HTTP.Timeout <= 0 || h.HTTP.Timeout > beatTimeout {
		h.HTTP.Timeout = beatTimeout
	}
	if most := min(h.Every, time.Minute); h.HTTP.MaxRetryAfter <= 0 || h.HTTP.MaxRetryAfter > most {
		h.HTTP.MaxRetryAfter = most // a receiver that asks for an hour would raise its own alarm
	}
	return h
}

// Whose heartbeats there are.
const (
	OfDispatcher = "dispatcher"
	OfSchedules  = "schedule"
)

// The signals of a schedule's heartbeat.
const (
	runSucceeded = "success"
	runBegan     = "start"
	runFailed    = "fail"
)

// beat is the payload of a task that sends a heartbeat. It has no URL: the sender reads that where it belongs.
type beat struct {
	Schedule string `json:"schedule,omitempty"` // "": of the dispatcher
	Signal   string `json:"signal,omitempty"`
	At       int64  `json:"at"` // when that was, in Unix milliseconds by the clock of Redis
}

// How long heartbeats of schedules are worth sending. A start that comes late would only set the clock of the receiver back.
const (
	endLasts   = time.Hour
	startLasts = time.Minute
)

// lasts is how long the beat is worth sending. A beat of the dispatcher would tell of a time that the next one tells of too.
func (b *beat) lasts(every time.Duration) time.Duration {
	switch {
	case b.Schedule == "":
		return every
	case b.Signal == runBegan:
		return startLasts
	}
	return endLasts
}

// task is the task that sends the beat. There is one of a schedule, and one of the dispatcher, at most.
func (b *beat) task(queue string) *task.Task {
	t := &task.Task{
		ID: HeartbeatType, Type: HeartbeatType, Queue: queue, Priority: task.High, Timeout: 2 * beatTimeout, Created: time.Now(),
		MaxAttempts: 20, Backoff: task.Backoff{Base: 2 * time.Second, Cap: time.Minute},
	}
	if b.Schedule != "" {
		t.ID += ":" + b.Schedule
	}
	if b.Signal == runBegan { // the end of that run waits for it
		t.MaxAttempts, t.Backoff = 3, task.Backoff{Base: time.Second, Cap: 5 * time.Second}
	}
	t.Payload, _ = json.Marshal(b) // texts and a number always encode
	return t
}

// errNoBeat says that this instance knows no URL for a heartbeat of the dispatcher; another one may.
var errNoBeat = errors.New("this instance has no heartbeat.url in its config")

var errLate = errors.New("it is too old to be sent")

// HeartbeatHandler sends the heartbeats of the tasks of [HeartbeatType].
type HeartbeatHandler struct {
	Heartbeat
	of       func(ctx context.Context, schedule string) (*producer.Heartbeat, error)
	http     handlers.TaskHandler
	observer Observer
	log      zerolog.Logger

	mu     sync.Mutex
	silent map[string]time.Time // until when a host gets no heartbeat of a schedule: it does not answer
}

// NewHeartbeatHandler returns the handler. Of returns the heartbeat of a schedule, nil if it has none, or an error that matches
// [task.ErrNotFound] if the schedule is gone. Observer may be nil.
func NewHeartbeatHandler(h Heartbeat, of func(context.Context, string) (*producer.Heartbeat, error), observer Observer, log zerolog.Logger) *HeartbeatHandler {
	h = h.withDefaults()
	return &HeartbeatHandler{Heartbeat: h, of: of, silent: map[string]time.Time{}, http: handlers.HTTP(h.HTTP), observer: observer, log: log}
}

// Handle implements [handlers.TaskHandler].
func (h *HeartbeatHandler) Handle(ctx context.Context, t *task.Task) error {
	b := &beat{}
	if err := json.Unmarshal(t.Payload, b); err != nil {
		return handlers.Dead(&task.FieldError{Field: "payload", Reason: "not a heartbeat", Hint: "onbeat makes these tasks itself"})
	}
	of, to := OfDispatcher, "the heartbeat"
	if b.Schedule != "" {
		of, to = OfSchedules, fmt.Sprintf("the heartbeat of schedule %q", b.Schedule)
	}
	if t.Claimed.Sub(time.UnixMilli(b.At)) > b.lasts(h.Every) {
		h.tell(of, GaveUp, fmt.Errorf("%s: %w; its last error: %s", to, errLate, cmp.Or(t.LastError(), "none")))
		return nil // a dead task would stand for an alarm that the receiver has raised
	}
	secrets := &secret.Set{}
	raw, err := h.url(ctx, b, secrets)
	if err == nil && raw == "" {
		return nil // nobody wants it any more
	}
	if err == nil {
		if b.Schedule == "" {
			err = h.send(ctx, t, to, raw, secrets)
		} else {
			err = h.sendSoon(ctx, t, to, raw, secrets)
		}
	}
	h.tell(of, resultOf(t, err), err)
	return err
}

func (h *HeartbeatHandler) tell(of, result string, err error) {
	if h.observer != nil {
		h.observer.Beat(of, result)
	}
	if result == GaveUp {
		h.log.Error().Err(err).Msg("gave up a heartbeat")
	}
}

// url is where a beat goes; "" for nowhere. It adds the values of the variables in the URL to the secrets.
func (h *HeartbeatHandler) url(ctx context.Context, b *beat, secrets *secret.Set) (string, error) {
	if b.Schedule == "" {
		if h.URL == "" {
			return "", errNoBeat
		}
		for name, value := range h.Env {
			secrets.AddNamed(name, value)
		}
		return h.URL, nil
	}
	of, err := h.of(ctx, b.Schedule)
	if errors.Is(err, task.ErrNotFound) || err == nil && of == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	raw := map[string]string{runSucceeded: of.URL, runBegan: of.Start, runFailed: of.Fail}[b.Signal]
	var missing error
	return reference.ReplaceAllStringFunc(raw, func(match string) string {
		name := match[2 : len(match)-1]
		value := os.Getenv(name)
		if value == "" || !slices.Contains(h.HTTP.PassEnv, name) {
			missing = fmt.Errorf("the heartbeat of schedule %q: %w: %s is not set, or is not in http.pass_env of this instance", b.Schedule, handlers.ErrEnv, match)
		}
		secrets.AddNamed(name, value)
		return value
	}), missing
}

// send makes the request. Neither its error nor an output of the run shows the URL or another secret, which the answer may repeat.
func (h *HeartbeatHandler) send(ctx context.Context, t *task.Task, to, raw string, secrets *secret.Set) error {
	call := *t
	call.Payload, _ = json.Marshal(map[string]string{"method": "GET", "url": raw}) // texts always encode
	err := h.http.Handle(handlers.KeepOutput(ctx, 0), &call)
	if err == nil {
		return nil
	}
	host := "an invalid URL"
	secrets.Add(raw)
	if u, err := url.Parse(raw); err == nil {
		host = u.Hostname()
	}
	return &sendError{to, host, field.Veil(secrets, err)}
}

// errSilent puts off a heartbeat of a schedule.
var errSilent = errors.New("its host did not answer a moment ago")

// sendSoon is send for a heartbeat of a schedule. All of them share a few workers with the dispatcher's own heartbeat and its messages, so
// a host that does not answer holds one of these for a short time, and is left alone for a while.
func (h *HeartbeatHandler) sendSoon(ctx context.Context, t *task.Task, to, raw string, secrets *secret.Set) error {
	u, err := url.Parse(raw)
	if err != nil {
		return h.send(ctx, t, to, raw, secrets)
	}
	h.mu.Lock()
	maps.DeleteFunc(h.silent, func(_ string, until time.Time) bool { return time.Now().After(until) })
	_, silent := h.silent[u.Host]
	h.mu.Unlock()
	if silent {
		return &sendError{to, u.Hostname(), errSilent}
	}
	short, done := context.WithTimeout(ctx, signalTimeout)
	defer done()
	if err = h.send(short, t, to, raw, secrets); err != nil && short.Err() != nil && ctx.Err() == nil {
		h.mu.Lock()
		h.silent[u.Host] = time.Now().Add(silence)
		h.mu.Unlock()
	}
	return err
}

// Close closes idle connections.
func (h *HeartbeatHandler) Close() error {
	if c, ok := h.http.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
