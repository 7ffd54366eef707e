package notify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// ErrNoTarget is returned by a [Handler] whose config does not have the target of a message. Another instance may have it, so the
// run is tried again.
var ErrNoTarget = errors.New("no target has this name in the config of this instance")

// Observer is told of each attempt to send a message. Its method must not block.
type Observer interface {
	// Notified is told the target and the result: one of [Results].
	Notified(target, result string)
	// Beat is told of each attempt to send a heartbeat, of the [OfDispatcher] or [OfSchedules], and its result.
	Beat(of, result string)
}

// The results of an attempt.
const (
	Sent   = "sent"
	Failed = "failed"  // it is tried again
	GaveUp = "gave_up" // it was the last attempt
)

// unknown is the target of a message that cannot be read.
const unknown = "unknown"

// Results are all of them.
func Results() []string { return []string{Sent, Failed, GaveUp} }

// Teller adds an event to those of the namespace.
type Teller interface {
	Tell(ctx context.Context, kind string, fields ...string) error
}

// Handler sends the messages of the tasks of [Type].
type Handler struct {
	senders  map[string]*sender
	observer Observer
	events   Teller
	log      zerolog.Logger
}

// NewHandler returns the handler for targets that have passed [Validate]. Observer may be nil.
func NewHandler(targets []Target, observer Observer, events Teller, log zerolog.Logger) (*Handler, error) {
	h := &Handler{senders: map[string]*sender{}, observer: observer, events: events, log: log}
	for _, t := range targets {
		s, err := newSender(t)
		if err != nil {
			return nil, err
		}
		h.senders[t.Name] = s
	}
	return h, nil
}

// Handle implements [handlers.TaskHandler].
func (h *Handler) Handle(ctx context.Context, t *task.Task) error {
	p, err := parseDelivery(t.Payload)
	if err != nil { // nobody knows for whom it was
		err = handlers.Dead(err)
		p = &delivery{Target: unknown}
	} else if s := h.senders[p.Target]; s == nil {
		err = fmt.Errorf("target %q: %w", p.Target, ErrNoTarget)
	} else {
		err = s.send(ctx, t, &p.Message)
	}
	h.tell(ctx, t, p, err)
	return err
}

// tell says what came of an attempt. A message that could not be sent is an event, and never another message.
func (h *Handler) tell(ctx context.Context, t *task.Task, p *delivery, err error) {
	result := resultOf(t, err)
	if h.observer != nil {
		h.observer.Notified(p.Target, result)
	}
	if result != GaveUp {
		return
	}
	h.log.Error().Err(err).Str("target", p.Target).Str("topic", string(p.Message.Topic)).Msg("gave up a message to a target")
	told := h.events.Tell(context.WithoutCancel(ctx), "notification failed", "target", p.Target, "topic", string(p.Message.Topic), "task", t.ID, "reason", shortError(err.Error()))
	if told != nil {
		h.log.Debug().Err(told).Msg("could not record that as an event")
	}
}

// resultOf is what came of an attempt of a task.
func resultOf(t *task.Task, err error) string {
	switch {
	case err == nil:
		return Sent
	case handlers.IsDead(err) || t.Attempt >= t.AttemptsAllowed():
		return GaveUp
	}
	return Failed
}

// CheckPayload implements [handlers.PayloadChecker].
func (h *Handler) CheckPayload(payload []byte) error {
	_, err := parseDelivery(payload)
	return err
}

// Close closes idle connections.
func (h *Handler) Close() error {
	for _, s := range h.senders {
		s.close()
	}
	return nil
}
