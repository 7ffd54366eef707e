package notify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// HeartConfig is what a [Heart] needs.
type HeartConfig struct {
	// Heartbeat is that of the dispatcher.
	Heartbeat Heartbeat
	// Well returns nil while nothing stops the heartbeat of the dispatcher; else what does.
	Well func(context.Context) error
	// Heartbeat and HearsStart say which schedules have heartbeats; see [producer.Scheduler].
	Schedules interface {
		Heartbeat(schedule string) (producer.Heartbeat, bool)
		HearsStart() bool
	}
	// Queue is where the tasks wait that send the heartbeats. Default: the default queue.
	Queue string
	// Log receives state changes. The zero Logger discards them.
	Log zerolog.Logger
}

// Heart enqueues heartbeats while its instance leads: those of the dispatcher by its Run, and those of schedules as it hears of their runs;
// see [producer.Schedules.KeepHealth].
type Heart struct {
	q   *queue.Queue
	cfg HeartConfig

	term    task.Term          // of what follows
	pending map[string][]*beat // by schedule: the last end that is not enqueued, and the start after it
	running map[string]bool    // the tasks that ran when it looked last
}

// NewHeart returns a heart of a namespace. It does not talk to Redis yet.
func NewHeart(rdb redis.UniversalClient, namespace string, cfg HeartConfig) (*Heart, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	cfg.Heartbeat = cfg.Heartbeat.withDefaults()
	return &Heart{q: q, cfg: cfg}, nil
}

// beatAgain is how soon the heart looks again after it found a reason not to beat: a short one costs no beat that is a day apart.
const beatAgain = 5 * time.Second

// Run enqueues the heartbeats of the dispatcher, in every term of the session, the first at once. It returns when the session drains or ends.
func (h *Heart) Run(s Session) error {
	stopped := false
	for {
		wait := step
		if _, _, leads := s.Term(); leads {
			began := time.Now()
			switch err := h.beat(s.Context()); {
			case err == nil && stopped:
				h.cfg.Log.Info().Msg("heartbeats go on")
				stopped = false
			case err != nil && !stopped && s.Context().Err() == nil:
				h.cfg.Log.Warn().AnErr("reason", err).Msg("heartbeats stop")
				stopped = true
			}
			wait = h.cfg.Heartbeat.Every
			if stopped {
				wait = min(wait, beatAgain)
			}
			wait -= time.Since(began)
		}
		select {
		case <-time.After(wait):
		case <-s.Draining():
			return nil
		case <-s.Context().Done():
			return nil
		}
	}
}

// beat enqueues a heartbeat of the dispatcher, or returns what stops it.
func (h *Heart) beat(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, askFor)
	defer done()
	if err := h.cfg.Well(ctx); err != nil {
		return err
	}
	now, err := h.q.Now(ctx)
	if err != nil {
		return err
	}
	refused, _, err := h.q.EnqueueAgain(ctx, []*task.Task{(&beat{At: now.UnixMilli()}).task(h.cfg.Queue)})
	if err == nil && !errors.Is(refused[0], task.ErrDuplicate) { // the one before is still to be sent: the receiver is away
		err = refused[0]
	}
	return err
}

// Listens implements [producer.Listener].
func (h *Heart) Listens(schedule string) bool {
	_, ok := h.cfg.Schedules.Heartbeat(schedule)
	return ok
}

// Hear implements [producer.Listener]. It enqueues the heartbeats of schedules. It signals only the last of several ends
// of one schedule, also of those that wait behind a heartbeat that is still to be sent.
func (h *Heart) Hear(ctx context.Context, term task.Term, runs []producer.Run) error {
	if h.term != term {
		h.term, h.pending, h.running = term, map[string][]*beat{}, nil
	}
	for i := range runs {
		h.hearEnd(&runs[i])
	}
	if err := h.hearStarts(ctx); err != nil || len(h.pending) == 0 {
		return err
	}
	names := slices.Sorted(maps.Keys(h.pending))
	tasks := make([]*task.Task, len(names))
	for i, name := range names {
		tasks[i] = h.pending[name][0].task(h.cfg.Queue)
	}
	refused, handled, err := h.q.EnqueueAgain(ctx, tasks)
	for i, name := range names[:handled] {
		if errors.Is(refused[i], task.ErrDuplicate) {
			continue // the one before is still to be sent, and they arrive in their order
		}
		if refused[i] != nil {
			h.cfg.Log.Warn().Err(refused[i]).Str("schedule", name).Msg("cannot enqueue a heartbeat of a schedule")
		}
		if h.pending[name] = h.pending[name][1:]; len(h.pending[name]) == 0 {
			delete(h.pending, name)
		}
	}
	return err
}

func (h *Heart) hearEnd(r *producer.Run) {
	of, _ := h.cfg.Schedules.Heartbeat(r.Schedule)
	b := &beat{Schedule: r.Schedule, Signal: runSucceeded, At: r.Began.Add(r.Took).UnixMilli()}
	if r.Outcome == history.Dead {
		b.Signal = runFailed
	}
	if b.Signal == runFailed && of.Fail == "" {
		return
	}
	h.pending[r.Schedule] = []*beat{b}
}

// hearStarts adds the starts of the runs that go on and did not when it looked last. Runs that ended before that are in the history by now.
func (h *Heart) hearStarts(ctx context.Context) error {
	if !h.cfg.Schedules.HearsStart() {
		h.running = nil
		return nil
	}
	held, err := h.q.Running(ctx)
	if err != nil {
		return err
	}
	oldest := int64(0)
	if h.running == nil && len(held) > 0 { // a new leader signals no start that would come too late
		now, err := h.q.Now(ctx)
		if err != nil {
			return err
		}
		oldest = now.Add(-startLasts).UnixMilli()
	}
	running := make(map[string]bool, len(held))
	for _, r := range held {
		running[r.ID] = true
		name := queue.ScheduleOf(r.ID)
		if of, ok := h.cfg.Schedules.Heartbeat(name); !ok || of.Start == "" || h.running[r.ID] || r.At.UnixMilli() < oldest {
			continue
		}
		list := h.pending[name]
		if n := len(list); n > 0 && list[n-1].Signal == runBegan {
			list = list[:n-1]
		}
		h.pending[name] = append(list, &beat{Schedule: name, Signal: runBegan, At: r.At.UnixMilli()})
	}
	h.running = running
	return nil
}
