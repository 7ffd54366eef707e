package conformance

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
)

// Scratch is a namespace that belongs to one scenario.
type Scratch struct {
	*admin.Admin
	// Queue is the namespace's queue.
	Queue *queue.Queue
	// Expire sets an expiry on every key of the namespace, in case no process is left to remove them. Nil leaves the keys:
	// the Redis itself is removed.
	Expire func(context.Context, time.Duration) error
	// Remove removes every key of the namespace, and nothing else. Nil leaves them.
	Remove func(context.Context) error
	// FlushScripts makes Redis forget all scripts, those of other programs included.
	FlushScripts func(context.Context) error
	// Close closes the connection.
	Close func()
}

// removeTime is how long it may take to remove a namespace.
const removeTime = 10 * time.Second

// KeysLive is how long the keys of a scratch namespace live if no process is left to remove them.
const KeysLive = 10 * time.Minute

// remove removes the namespace, even if the suite was interrupted.
func (s *Scratch) remove() error {
	if s.Remove == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), removeTime)
	defer done()
	return s.Remove(ctx)
}

// redisClock is how far the clock of Redis is ahead of the local one, give or take slack.
type redisClock struct{ ahead, slack time.Duration }

// clockCalls is how often the clock is read: the fastest call is the most accurate.
const clockCalls = 10

func readClock(ctx context.Context, s *Scratch) (redisClock, error) {
	best := redisClock{slack: time.Hour}
	for range clockCalls {
		asked := time.Now()
		there, err := s.Queue.Now(ctx)
		if err != nil {
			return best, err
		}
		if took := time.Since(asked); took/2 < best.slack {
			best = redisClock{there.Sub(asked.Add(took / 2)), took / 2}
		}
	}
	return best, nil
}

// of converts a local time to the clock of Redis.
func (c redisClock) of(t time.Time) time.Time { return t.Add(c.ahead) }

// now returns the present by the clock of Redis.
func (c redisClock) now() time.Time { return c.of(time.Now()) }
