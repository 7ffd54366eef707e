package consumer

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
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
	lately   lately             // taken by Redis, which may lose it
	cancels  *cancels
	asked    []instance.Cancel // requests that came while a call was under way
	seq      int64
	answers  chan answer
	calling  bool      // a call is under way
	portion  int       // most tasks to claim with the next
	stale    int       // calls in a row that found other lanes than the ones that are known
	wake     time.Time // the earliest that was heard of while it was
	doubt    bool      // a reply, or what was settled, was lost: what is held has to be read
	draining bool      // nothing more is begun
	relaxed  bool      // and enough replicas were waited for long enough
	alarm    *alarm
	clock    store.Clock
	keyed    bool     // a task with a key is among settled
	owed     []string // keys for which others wait in lanes that are not known here yet
	slept    func(since time.Time) time.Duration
}

// New returns a consumer. It refuses a bad config.
func New(q *queue.Queue, h Handlers, cfg Config) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Consumer{q: q, handlers: h, cfg: cfg.withDefaults(), log: cfg.Log, slept: slept}, nil
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
	c.clock, c.wake = store.Clock{}, time.Time{}
	c.asked = c.asked[:0]
	c.stay, c.lanes, c.seq, c.draining, c.keyed, c.owed = s, lanes{}, 0, false, false, nil
	c.doubt = c.q.Strict() // nothing is claimed before replicas are known to be there: it could not begin, and would cost an attempt
	c.inflight = make(map[string]*run, c.cfg.Concurrency)
	c.results = make(chan result, c.cfg.Concurrency)
	c.answers, c.calling, c.portion, c.stale = make(chan answer, 1), false, firstPortion, 0
	c.settled, c.lately, c.relaxed = c.settled[:0], lately{}, false
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
		if free := c.free(); !c.calling && retry == nil && (len(c.settled)+len(c.owed) > 0 || c.doubt || look && free > 0) {
			select {
			case <-c.stay.Draining():
				return
			case <-c.stay.Context().Done():
				return
			default:
			}
			c.send(free)
			look = false
		}
		select {
		case a := <-c.answers:
			again, err := c.answered(a)
			if err != nil {
				failures++
				retry, look = time.After(c.troubled(err, failures)), true
			} else {
				failures, look = 0, look || again
			}
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

// free is how many more tasks it may claim.
func (c *Consumer) free() int { return c.cfg.Concurrency - len(c.inflight) }

// canSleep reports whether the loop knows when to look next. After a time with no free worker it does not.
func (c *Consumer) canSleep() bool { return !c.alarm.at.IsZero() }

// woken takes in a wake-up and reports whether to look now; if it names a later moment, the alarm is set to it.
func (c *Consumer) woken() bool {
	if c.stay.ClaimsInDoubt() {
		c.doubt = true
	}
	due, ok := c.stay.TakeWake()
	if !ok {
		return false
	}
	at := c.clock.Local(due)
	if due.IsZero() || !at.After(time.Now()) {
		return true
	}
	if c.calling && (c.wake.IsZero() || at.Before(c.wake)) {
		c.wake = at // the answer under way may be of before, and must not put it off
	}
	c.wakeBy(at)
	return false
}

// wakeBy sets the alarm to a moment, if there is one and it is not set to an earlier one.
func (c *Consumer) wakeBy(at time.Time) {
	if !at.IsZero() && (c.alarm.at.IsZero() || at.Before(c.alarm.at)) {
		c.alarm.Set(at)
	}
}

// gather takes in the results that are there. It lets running handlers go on first: short ones then end together, and
// are settled in one call instead of one call each.
func (c *Consumer) gather() {
	if c.calling {
		return // they have until its answer
	}
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
	if r.run.again != 0 {
		r.settle.Fence = r.run.again
	}
	c.settled = append(c.settled, r.settle)
}

// laneClaims lists the lanes of a call: those it may claim from, and those in which the script may have to put
// something down.
func (c *Consumer) laneClaims(batch []queue.Settlement) []queue.LaneClaim {
	list := c.lanes.order(make([]queue.LaneClaim, 0, c.lanes.count+len(c.lanes.others)), c.cfg.Strict, c.keyed || len(c.owed) > 0)
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

// plan decides from a reply when to look next, with so many workers free.
func (c *Consumer) plan(r *queue.CycleReply, free int) (again bool) {
	switch {
	case !r.MayClaim:
		c.alarm.Set(time.Time{}) // the stay wakes us when it may
		return false
	case r.LeftDue:
		c.alarm.Set(time.Time{})
		return free > 0
	case r.Watching && !r.NextDue.IsZero():
		c.alarm.Set(c.clock.Local(r.NextDue))
	case free > 0 && !r.NextDue.IsZero(): // others watch: if they leave, or a message is lost, this one comes later
		c.alarm.Set(c.clock.Local(r.NextDue.Add(backstop + rand.N(backstop/2))))
	default:
		c.alarm.Set(time.Time{})
	}
	return false
}
