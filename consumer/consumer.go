package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// Consumer is a TaskConsumer: it claims due tasks, runs them, and settles them.
type Consumer struct {
	q        *queue.Queue
	handlers Handlers
	cfg      Config
	log      zerolog.Logger

	// The rest belongs to the loop of one stay.
	stay     *instance.Stay
	lanes    lanes
	reads    string // names what it reads
	inflight map[string]*run
	results  chan result
	settled  []queue.Settlement // ended, not yet taken by Redis
	cancels  *cancels
	seq      int64
	doubt    bool // a reply was lost: what is held has to be read
	draining bool // nothing more is begun
	alarm    *alarm
	clock    queue.Clock
	keyed    bool // a task with a key is among settled
}

// New returns a consumer. It refuses a bad config.
func New(q *queue.Queue, h Handlers, cfg Config) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Consumer{q: q, handlers: h, cfg: cfg.withDefaults(), log: cfg.Log}, nil
}

// Run works for one stay of an instance. It takes due tasks until the stay drains, lets what runs finish for as long as
// the config's Drain, then cancels the rest and hands it back without counting an attempt. If the stay's context ends
// first, the lease is lost: everything running is cancelled and settled by nobody here. Run returns when nothing runs
// any more. It must not run twice at once.
func (c *Consumer) Run(s *instance.Stay) error {
	c.reset(s)
	defer c.alarm.Stop()
	s.OnCancel(c.cancels.add)
	c.consume()
	c.drain()
	return nil
}

// reset begins a stay: nothing of an earlier one is left.
func (c *Consumer) reset(s *instance.Stay) {
	c.stay, c.lanes, c.seq, c.doubt, c.draining, c.keyed = s, lanes{}, 0, false, false, false
	c.inflight = make(map[string]*run, c.cfg.Concurrency)
	c.results = make(chan result, c.cfg.Concurrency)
	c.settled = c.settled[:0]
	c.reads = reads(c.handlers, &c.cfg)
	c.cancels = newCancels()
	c.alarm = newAlarm()
}

// consume is the loop: it returns when the stay drains or has ended.
func (c *Consumer) consume() {
	look := true // there may be something to claim
	var retry <-chan time.Time
	var failures int
	for {
		free := c.cfg.Concurrency - len(c.inflight)
		if retry == nil && (len(c.settled) > 0 || look && free > 0) {
			select {
			case <-c.stay.Draining():
				return
			case <-c.stay.Context().Done():
				return
			default:
			}
			again, err := c.cycle(min(free, queue.MaxBatch))
			if err != nil {
				failures++
				retry = time.After(c.troubled(err, failures))
			} else {
				failures, look = 0, again
				if !again || c.cfg.Concurrency-len(c.inflight) < queue.MaxBatch {
					c.gather()
				} // else the next batch is claimed while this one runs
			}
			continue
		}
		select {
		case r := <-c.results:
			c.ended(r)
			c.gather()
			look = look || !c.canSleep()
		case <-c.alarm.timer.C:
			c.alarm.Near()
		case <-c.alarm.C:
			c.alarm.Rang()
			look = true
		case <-c.stay.Work:
			look = c.woken() || look
		case <-c.cancels.bell:
			c.cancelRuns()
		case <-retry:
			retry = nil
		case <-c.stay.Draining():
			return
		case <-c.stay.Context().Done():
			return
		}
	}
}

// canSleep reports whether the loop knows when to look next. After a time with no free worker it does not.
func (c *Consumer) canSleep() bool { return !c.alarm.at.IsZero() }

// woken takes in a wake-up and reports whether to look now; if it names a later moment, the alarm is set to it.
func (c *Consumer) woken() bool {
	due, ok := c.stay.TakeWake()
	if !ok {
		return false
	}
	at := c.clock.Local(due)
	if due.IsZero() || !at.After(time.Now()) {
		return true
	}
	if c.alarm.at.IsZero() || at.Before(c.alarm.at) {
		c.alarm.Set(at)
	}
	return false
}

// gather takes in the results that are there. It lets running handlers go on first: short ones then end together, and
// are settled in one call instead of one call each.
func (c *Consumer) gather() {
	for quiet := 0; quiet < 2 && len(c.inflight) > 0; quiet++ {
		runtime.Gosched()
		for more := true; more; {
			select {
			case r := <-c.results:
				c.ended(r)
				quiet = 0
			default:
				more = false
			}
		}
		if len(c.settled) >= queue.MaxBatch {
			return
		}
	}
}

// ended takes in one result.
func (c *Consumer) ended(r result) {
	if c.inflight[r.run.task.ID] != r.run {
		return // it was handed back while its handler did not listen
	}
	delete(c.inflight, r.run.task.ID)
	if r.drop {
		return
	}
	c.keyed = c.keyed || r.run.task.Key != ""
	c.settled = append(c.settled, r.settle)
}

// cycle makes one round trip and reports whether to look again at once. Settlements stay until a call has succeeded.
func (c *Consumer) cycle(want int) (again bool, err error) {
	ctx, done := context.WithTimeout(c.stay.Context(), callTimeout)
	defer done()
	if c.lanes.count == 0 && c.lanes.version == 0 {
		if err := c.lanes.load(ctx, c.q, c.handlers, &c.cfg); err != nil {
			return false, err
		}
	}
	if c.doubt {
		want = 0 // first a call that makes every earlier one stale
	}
	c.seq++
	batch := c.settled[:min(len(c.settled), queue.MaxBatch)]
	req := &queue.CycleRequest{
		Instance: c.stay.ID, Gen: c.stay.Gen, Seq: c.seq, Want: want, Settle: batch,
		Lanes: c.laneClaims(batch), Reads: c.reads,
	}
	asked := time.Now()
	reply, err := c.q.Cycle(ctx, req)
	if err != nil {
		return false, err
	}
	c.clock.Set(asked, time.Now(), reply.Now)
	c.settled = c.settled[:copy(c.settled, c.settled[len(batch):])]
	c.keyed = c.keyed && len(c.settled) > 0
	if n := len(reply.Void); n > 0 {
		c.log.Warn().Int("runs", n).Msg("settled in vain: the claim was not held any more")
	}
	for _, t := range reply.Claimed {
		c.accept(t)
	}
	for _, m := range reply.Malformed {
		c.malformed(m)
	}
	if c.doubt {
		return true, c.adopt(ctx)
	}
	return c.plan(ctx, reply)
}

// backstop is how long after a due time one looks that others watch.
const backstop = time.Second

// callTimeout bounds one call to Redis.
const callTimeout = 5 * time.Second

func (c *Consumer) accept(t *task.Task) {
	t.Release = c.stay.Release
	c.start(c.stay.Context(), t)
}

// laneClaims lists the lanes of a call: those it may claim from, and those in which the script may have to put
// something down.
func (c *Consumer) laneClaims(batch []queue.Settlement) []queue.LaneClaim {
	list := c.lanes.order(make([]queue.LaneClaim, 0, c.lanes.count+len(c.lanes.others)), c.cfg.Strict, c.keyed)
	for i := range batch {
		s := &batch[i]
		if s.Outcome != queue.Moved || c.lanes.knows(s.Lane) {
			continue
		}
		known := false
		for _, l := range list {
			known = known || l.Lane == s.Lane
		}
		if !known {
			list = append(list, queue.LaneClaim{Lane: s.Lane, Limit: -1})
		}
	}
	return list
}

// plan decides from a reply when to look next.
func (c *Consumer) plan(ctx context.Context, r *queue.CycleReply) (again bool, err error) {
	if r.LanesVer != c.lanes.version {
		return true, c.lanes.load(ctx, c.q, c.handlers, &c.cfg)
	}
	free := c.cfg.Concurrency - len(c.inflight)
	switch {
	case !r.MayClaim:
		c.alarm.Set(time.Time{}) // a change of leader wakes us
		return false, nil
	case r.LeftDue:
		c.alarm.Set(time.Time{})
		return free > 0, nil
	case r.Watching && !r.NextDue.IsZero():
		c.alarm.Set(c.clock.Local(r.NextDue))
	case free > 0 && !r.NextDue.IsZero(): // others watch: if they leave, or a message is lost, this one comes later
		c.alarm.Set(c.clock.Local(r.NextDue.Add(backstop + rand.N(backstop/2))))
	default:
		c.alarm.Set(time.Time{})
	}
	return false, nil
}

// adopt starts what this generation holds without knowing: tasks claimed by a call whose reply was lost.
func (c *Consumer) adopt(ctx context.Context) error {
	claims, _, err := c.q.Held(ctx, c.stay.Gen, c.stay.ID)
	if err != nil {
		return err
	}
	ended := make(map[string]bool, len(c.settled))
	for i := range c.settled {
		ended[c.settled[i].ID] = true
	}
	n := 0
	for _, claim := range claims {
		if c.inflight[claim.Task.ID] != nil || ended[claim.Task.ID] {
			continue
		}
		n++
		switch {
		case claim.Err != nil:
			c.malformed(queue.Malformed{ID: claim.Task.ID, Fence: claim.Task.Fence, Record: claim.Record, Err: claim.Err})
		case c.draining:
			c.handBack(claim.Task)
		default:
			c.accept(claim.Task)
		}
	}
	c.doubt = false
	if n > 0 {
		c.log.Info().Int("tasks", n).Msg("took up what a lost reply had claimed")
	}
	return nil
}

// malformed deals with a record that cannot be read: one of a newer format waits for a newer release, a damaged one is
// dead.
func (c *Consumer) malformed(m queue.Malformed) {
	c.log.Error().Err(m.Err).Str("task", m.ID).Msg("unreadable task record")
	s := queue.Settlement{ID: m.ID, Fence: m.Fence, Outcome: queue.Died, Record: []byte(m.Record)}
	if newer := m.Record != "" && m.Record[0] > '1' && m.Record[0] <= '9'; newer {
		if m.Lane == (queue.Lane{}) {
			return // where it belongs is in its record: it stays claimed until a release that can read it takes it back
		}
		s = queue.Settlement{ID: m.ID, Fence: m.Fence, Outcome: queue.Moved, Lane: m.Lane, Delay: time.Minute}
	}
	c.settled = append(c.settled, s)
}

// troubled takes in a failed call and returns how long to wait before the next.
func (c *Consumer) troubled(err error, failures int) time.Duration {
	c.doubt = true
	switch {
	case errors.Is(err, queue.ErrFenced):
		c.stay.Doubt()
	case errors.Is(err, queue.ErrStale), c.stay.Context().Err() != nil:
	case failures == 1:
		c.log.Warn().Err(err).Msg("cannot take or settle tasks: trying again")
	}
	d := min(time.Second, 10*time.Millisecond<<min(failures, 10))
	return d/2 + rand.N(d/2+1)
}
