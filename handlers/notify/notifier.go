package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Config is what a [Notifier] needs.
type Config struct {
	// Targets are those that it tells. They have passed [Validate].
	Targets []Target
	// Queue is where the tasks wait that send the messages. Default: the default queue.
	Queue string
	// BehindFor is how long the archive must have been behind, without a break, for the targets to hear of it. Default 5m.
	BehindFor time.Duration
	// Troubles says what is not well now. Default nil: the targets do not hear of [Hung], [Unhandled], [Lost] and [Paused].
	Troubles func(context.Context) ([]Trouble, error)
	// Log receives what fails. The zero Logger discards it.
	Log zerolog.Logger
}

// Session is what a Notifier needs to know of its instance; see [instance.Session].
//
// [instance.Session]: https://pkg.go.dev/github.com/onbeat/onbeat/instance#Session
type Session interface {
	// Context ends with the session, and Draining when the instance resigns.
	Context() context.Context
	Draining() <-chan struct{}
	// Term is the term in which the instance leads, if it does, and when that began.
	Term() (t task.Term, began time.Time, leads bool)
}

// Notifier follows what happens in a partition while its instance leads, and enqueues the messages for its targets. It reads small
// pages beside the scheduler, so that it holds up nothing.
type Notifier struct {
	q     *queue.Queue
	cfg   Config
	known *known // nil: to be read from Redis
	add   func(context.Context, *task.Task) error

	behind archive
	needed atomic.Pointer[string] // nil: not known yet
}

// known is what the notifier knows while it leads.
type known struct {
	rounds   []*round
	messages map[string]string  // that are to be enqueued, by the IDs of their tasks
	fresh    *producer.Follower // nil: no target wants to hear what is stale
	stale    []producer.Stale
	followed time.Time // when fresh was last asked
	troubles []Trouble // when the status was last asked
	told     bool      // that is known
	asked    time.Time
	page     int      // how many entries of a stream are read at once
	old      []string // names that belong to windows of no target for long
}

// step is how often the notifier looks, and again how long it waits after the first failure.
const (
	step         = 2 * time.Second
	again        = time.Second
	longestAgain = 30 * time.Second
)

// New returns a notifier of a namespace. It does not talk to Redis yet.
func New(rdb redis.UniversalClient, namespace string, cfg Config) (*Notifier, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	targets := make([]Target, len(cfg.Targets))
	for i, t := range cfg.Targets {
		targets[i] = t.withDefaults()
	}
	cfg.Targets, cfg.BehindFor = targets, cmp.Or(cfg.BehindFor, behindFor)
	return &Notifier{q: q, cfg: cfg, add: func(ctx context.Context, t *task.Task) error {
		// Not through a producer: a caller may add no task of this type, and a user's limit of payloads is not for it.
		refused, _, err := q.Enqueue(ctx, []*task.Task{t}, true)
		return errors.Join(append(refused, err)...)
	}}, nil
}

// Run tells the targets, in every term of the session. It returns when the session drains or ends. It retries after
// every failure; no failure ends it.
func (n *Notifier) Run(s Session) error {
	failures := 0
	for {
		wait := step
		term, _, leads := s.Term()
		if !leads {
			n.known = nil
		} else if next, err := n.look(s.Context(), term); err == nil {
			if failures > 0 {
				n.cfg.Log.Info().Msg("notifying goes on")
			}
			failures, wait = 0, next
		} else {
			n.known = nil // the state in Redis is true, however far the look came
			if failures == 0 && !over(err) && s.Context().Err() == nil {
				n.cfg.Log.Warn().Err(err).Msg("cannot follow what to notify of: trying again")
			}
			wait = min(longestAgain, again<<min(failures, 10))
			failures++
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

// over reports whether an error says that another instance leads.
func over(err error) bool {
	return errors.Is(err, queue.ErrNotLeader) || errors.Is(err, queue.ErrFenced) || errors.Is(err, task.ErrChanged)
}

// look reads on, and tells of the windows that are over. It returns in how long to look again.
func (n *Notifier) look(ctx context.Context, term queue.Term) (time.Duration, error) {
	now, err := n.q.Now(ctx)
	if err != nil {
		return 0, err
	}
	if n.known == nil {
		if n.known, err = n.load(ctx, now); err != nil {
			return 0, err
		}
	}
	if err := n.settleIn(ctx, term, now); err != nil {
		return 0, err
	}
	n.need()
	if err := n.enqueue(ctx, term); err != nil { // first the messages that an earlier leader could not enqueue
		return 0, err
	}
	whole, err := n.read(ctx)
	if err != nil || !whole {
		return 0, err
	}
	if err := n.follow(ctx, now); err != nil {
		return 0, err
	}
	wait := step
	for _, r := range n.known.rounds {
		if end, over := r.ended(now); over {
			if err := n.close(ctx, term, r, end); err != nil {
				return 0, err
			}
		}
		wait = min(wait, max(r.end().Sub(now), time.Millisecond))
	}
	return wait, n.enqueue(ctx, term)
}

// unlooked is for how long there may have been no look when the clock went back: tasks that died meanwhile did so before now.
const unlooked = time.Minute

// settleIn notes where the first window of new targets begins, and from when on the dead are to be read if the clock went back to before
// the open window, so that the next leader begins there too. Some of the dead are told of twice then.
func (n *Notifier) settleIn(ctx context.Context, term queue.Term, now time.Time) error {
	for _, r := range n.known.rounds {
		p, noted := parsePosition(r.saved)
		switch {
		case !noted:
			p = r.place
		case now.UnixMilli() < p.diedFrom():
			p.Died = now.Add(-unlooked).UnixMilli()
		default:
			continue
		}
		name, text := positionName(r.window), p.encode()
		if err := n.q.ChangeNotices(ctx, term, queue.NoticeChange{Name: name, Was: r.saved, Set: map[string]string{name: text}}); err != nil {
			return err
		}
		r.saved, r.place.Died = text, p.Died
	}
	return nil
}

// followEvery is how often the freshness of schedules is read besides at the end of a window, so that no reading is a long one.
const followEvery = 10 * time.Second

// follow reads how stale schedules are, and what else is not well, if it is time.
func (n *Notifier) follow(ctx context.Context, now time.Time) error {
	k := n.known
	ends := slices.ContainsFunc(k.rounds, func(r *round) bool { _, over := r.ended(now); return over })
	if ends {
		n.ask(ctx, now)
	}
	if k.fresh == nil || !ends && now.Sub(k.followed) < followEvery {
		return nil
	}
	f, err := k.fresh.Follow(ctx)
	if err != nil {
		return err
	}
	k.stale, k.followed = f.Stale, now
	return nil
}

// close ends a window: Redis notes what its messages are, and where the next one begins, in one step.
func (n *Notifier) close(ctx context.Context, term queue.Term, r *round, end time.Time) error {
	if r.any(Dead) {
		died, err := n.q.DiedBetween(ctx, time.UnixMilli(r.place.diedFrom()), end)
		if err != nil {
			return err
		}
		records, err := n.q.Records(ctx, r.takeDied(died, end))
		if err != nil {
			return err
		}
		r.describe(records)
	}
	r.judge(end, n.known.stale)
	r.settle(end)
	if n.known.told {
		r.judgeTroubles(end, n.known.troubles)
	}
	entries, since := n.behind.now()
	r.judgeArchive(end, entries, since, n.cfg.BehindFor)
	c := r.change(end)
	saved := c.Set[c.Name]
	messages := map[string]string{}
	for id, p := range r.messages(n.q.Namespace(), n.q.Keys().Notices, end) {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		messages[id] = string(text)
		c.Set[messageName(id)] = string(text)
	}
	c.Remove = append(c.Remove, n.known.old...)
	if err := n.q.ChangeNotices(ctx, term, c); err != nil {
		return err
	}
	n.known.old = nil
	maps.Copy(n.known.messages, messages)
	r.begin(end, saved)
	n.need()
	return nil
}

// enqueue adds the tasks of the messages that Redis has noted, and has it forget them. If this instance is lost in between, the
// next leader adds them again, and Redis refuses them.
func (n *Notifier) enqueue(ctx context.Context, term queue.Term) error {
	if len(n.known.messages) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(n.known.messages))
	first := n.known.rounds[0]
	c := queue.NoticeChange{Name: positionName(first.window), Was: first.saved}
	for _, id := range ids {
		err := n.add(ctx, taskOf(id, n.cfg.Queue, n.known.messages[id]))
		if err != nil && !errors.Is(err, task.ErrDuplicate) {
			return err
		}
		c.Remove = append(c.Remove, messageName(id))
	}
	if err := n.q.ChangeNotices(ctx, term, c); err != nil {
		return err
	}
	n.known.messages = map[string]string{}
	return nil
}
