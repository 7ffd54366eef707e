package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Mover moves tasks from the table to Redis. Any number of movers may run at once, in any processes.
type Mover struct {
	from  Opener
	q     *queue.Queue       // of the first partition
	p     *producer.Producer // the same
	parts []Part
	where func(*task.Task) (int, error)
	log   zerolog.Logger

	namespace string
	observer  Observer // may be nil

	// The fields below belong to Run.
	db     Database
	d      *dialect
	ready  bool // the table is there
	most   int  // rows of the next batch
	failed int  // turns in a row
	stuck  stuck
	doubts doubts
	told   bell
	away   map[int]*absence // partitions that are away, by their index
}

// bell rings when there may be rows to move.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// MoverConfig says what a mover moves, and whither.
type MoverConfig struct {
	// Database is where the table is.
	Database Opener
	// Redis and Namespace are where the tasks go. The mover moves those of this namespace, and those that name none.
	Redis     redis.UniversalClient
	Namespace string
	// Producer adds the tasks there.
	Producer *producer.Producer
	// Parts are the partitions of a namespace that is split, in order, and Where says in which of them a task lies, from 1. Redis and
	// Producer are then those of the first. Where refuses a task that cannot lie in one. Default: the namespace is not split.
	Parts []Part
	Where func(t *task.Task) (int, error)
	// Observer is told about the work of the mover. Nil: no observer.
	Observer Observer
	// Log receives changes of state, and failures.
	Log zerolog.Logger
}

// Part is one partition of a namespace.
type Part struct {
	Redis    redis.UniversalClient
	Producer *producer.Producer

	q *queue.Queue
}

// NewMover returns a mover. It refuses an invalid Database with a [*task.FieldError], and does not connect yet.
func NewMover(c MoverConfig) (*Mover, error) {
	if err := c.Database.Validate(); err != nil {
		return nil, err
	}
	q, err := queue.Of(c.Redis, c.Namespace)
	if err != nil {
		return nil, err
	}
	if len(c.Parts) == 0 {
		c.Parts, c.Where = []Part{{Redis: c.Redis, Producer: c.Producer}}, func(*task.Task) (int, error) { return 1, nil }
	}
	parts := slices.Clone(c.Parts)
	for i := range parts {
		if parts[i].q, err = queue.Of(parts[i].Redis, c.Namespace); err != nil {
			return nil, err
		}
	}
	return &Mover{
		from: c.Database, q: q, p: c.Producer, parts: parts, where: c.Where, log: c.Log, namespace: c.Namespace, observer: c.Observer,
		most: maxBatch, stuck: stuck{}, told: make(bell, 1), away: map[int]*absence{},
	}, nil
}

// Run moves tasks until ctx ends. While the database or Redis is away, it waits and tries again: rows stay where they are. A batch
// that is under way when ctx ends has a moment to finish; if it does not, it is rolled back, and another mover moves it. Run
// returns an error only for a config that it cannot use. Call it once at a time.
func (m *Mover) Run(ctx context.Context) error {
	if err := m.open(); err != nil {
		return err
	}
	defer func() { _ = m.db.Close() }()
	listening := m.listen(ctx)
	defer func() { <-listening }()
	m.log.Info().Stringer("database", m.from).Msg("moving tasks of the outbox")
	for ctx.Err() == nil {
		more, err := m.turn(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			m.fails(err)
			pause(ctx, m.backoff())
		case !more:
			m.wait(ctx)
		}
	}
	return nil
}

func (m *Mover) open() (err error) {
	if m.db, err = m.from.Open(); err != nil {
		return err
	}
	m.d, m.ready, m.failed = m.db.Kind.dialect(), false, 0
	m.db.Poll = cmp.Or(m.db.Poll, defaultPoll)
	return nil
}

// turn looks for rows, and moves a batch if there are some. It reports whether there may be more.
func (m *Mover) turn(ctx context.Context) (more bool, err error) {
	ctx, done := m.bounded(ctx)
	defer done()
	if !m.ready {
		if err := m.d.migrate(ctx, m.db.DB); err != nil {
			return false, err
		}
		m.ready = true
	}
	var own, free int
	if err := m.db.QueryRowContext(ctx, m.d.count, m.namespace).Scan(&own, &free); err != nil {
		return false, fmt.Errorf("look into the outbox: %w", err)
	}
	if m.observer != nil {
		m.observer.OutboxWaiting(own + free)
	}
	if free > 0 {
		n, err := m.adopt(ctx)
		if err != nil {
			return false, err
		}
		own, more = own+n, n > 0 && n < free
	}
	if own > 0 {
		n, err := m.move(ctx)
		if err != nil {
			return false, err
		}
		more = more || n > 0 && n < own
	}
	m.succeeds()
	return more, nil
}

// adopt gives rows of no namespace that of this mover. That is committed before they are moved: a row that two namespaces may move
// might come to both.
func (m *Mover) adopt(ctx context.Context) (int, error) {
	r, err := m.db.ExecContext(ctx, m.d.adopt, m.namespace, maxBatch)
	if err != nil {
		return 0, fmt.Errorf("take rows of no namespace: %w", err)
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// lastWait is how long a batch that is under way may take to finish when its mover is to stop.
const lastWait = 2 * time.Second

// bounded returns a context for one turn, which ends a moment later than ctx.
func (m *Mover) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.d.within)
	stop := context.AfterFunc(ctx, func() {
		pause(turn, lastWait)
		cancel()
	})
	return turn, func() {
		stop()
		cancel()
	}
}

// wait waits until there may be rows: a message, or the time to look by itself. Movers that began together drift apart.
func (m *Mover) wait(ctx context.Context) {
	every := m.db.Poll
	if len(m.away) > 0 { // no message tells that a partition is back
		every = min(every, awayFor)
	}
	poll := time.NewTimer(every - time.Duration(rand.Int64N(int64(every)/10)))
	defer poll.Stop()
	select {
	case <-m.told:
	case <-poll.C:
	case <-ctx.Done():
	}
}

// fails logs the first failure of a series.
func (m *Mover) fails(err error) {
	if errors.Is(err, queue.ErrLate) {
		m.log.Info().Err(err).Msg("the outbox: begin the batch anew")
		return
	}
	if m.failed++; m.failed == 1 {
		m.log.Warn().Err(err).Msg("cannot move tasks of the outbox: trying again")
	}
}

func (m *Mover) succeeds() {
	if m.failed > 0 {
		m.failed = 0
		m.log.Info().Msg("moves tasks of the outbox again")
	}
}

const (
	firstBackoff = 250 * time.Millisecond
	mostBackoff  = 15 * time.Second
)

// backoff returns how long to wait after a failure.
func (m *Mover) backoff() time.Duration {
	d := min(firstBackoff<<min(m.failed, 10), mostBackoff)
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
