package consumer

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/tracing"
)

// Consumer is a TaskConsumer: it claims due tasks, runs them, and settles the runs.
type Consumer struct {
	q        *queue.Queue
	handlers Handlers
	cfg      Config
	notes    history.Notes   // which runs are noted
	tracer   *tracing.Tracer // nil: none
	log      zerolog.Logger

	// When the log and an event last named a task that this instance cannot decrypt.
	sealedTold, sealedNoted time.Time
	noting                  sync.WaitGroup

	// The fields below belong to the loop of one session.
	session  *instance.Session
	runs     context.Context // the parent of those of the runs: the session's, with the namespace
	lanes    lanes
	reads    string // a name for the lanes and limits that this consumer reads
	inflight map[string]*run
	busy     room  // how many run of inflight
	held     int   // workers of the pool that are for the tasks of the call under way, or of the next one
	seat     *seat // of the pool; nil: none
	watches  bool  // Redis counts on this consumer to look at the next due task
	crowd    crowd // how many of these, by schedule
	results  chan result
	workers  *workers
	types    map[string]*taskType // by name, those that ran
	last     *taskType            // that of the task that began last
	settled  []queue.Settlement   // settlements that Redis has not accepted yet
	lately   lately               // settlements that Redis has accepted, and may still lose in a failover
	cancels  *cancels
	asked    []instance.Cancel // cancel requests that came while a call was under way
	seq      int64
	answers  chan answer
	calling  bool        // a call is under way
	portion  int         // most tasks that the next call claims
	came     time.Time   // when the last answer of this burst came
	heavy    bool        // the runs of this burst take longer than its calls
	stale    int         // calls in a row that found a version of the lanes other than ours
	spare    *time.Timer // rings when there was no call for spareEvery
	wake     time.Time   // the earliest due time that a wake-up named while the call was under way
	doubt    bool        // a reply or a settlement was lost: the consumer must read from Redis which claims it holds
	draining bool        // the session drains: no run begins
	relaxed  bool        // the consumer has waited long enough for replicas: settle without them
	alarm    *alarm
	clock    store.Clock
	keyed    bool     // settled has a task with a key
	owed     []string // keys that have room, while a task waits for them in a lane that this consumer does not know yet
	slept    func(since time.Time) time.Duration
}

// New returns a consumer that claims the due tasks of a namespace and runs them with h. It returns the error of [Config.Validate]
// if cfg is invalid, and a [*task.FieldError] for a namespace that is.
func New(rdb redis.UniversalClient, namespace string, h Handlers, cfg Config) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if cfg.Observer != nil {
		cfg.Observer.Workers(cfg.Concurrency)
	}
	return &Consumer{q: q, handlers: h, cfg: cfg, notes: q.Notes(), log: cfg.Log, slept: slept, tracer: tracing.New(cfg.TracerProvider, namespace)}, nil
}

// Run claims and runs due tasks for one session of an instance, until the session drains. Then the runs may finish for as long
// as [Config.Drain]. Run cancels the rest, hands the tasks back without counting an attempt, and returns when nothing
// runs any more.
//
// If the session's context ends first, the lease is lost: Run cancels every run and settles none, because another
// instance recovers the tasks. A handler that does not return within 2 s of its cancellation is left behind: Run returns
// without it.
//
// The caller must not call Run while an earlier Run has not returned.
func (c *Consumer) Run(s *instance.Session) error {
	c.reset(s)
	if c.seat != nil {
		defer c.seat.leave()
	}
	defer c.alarm.Stop()
	defer c.spare.Stop()
	defer c.workers.close()
	defer c.noting.Wait()
	s.OnCancel(c.cancels.add)
	c.consume()
	c.drain()
	return nil
}

// reset clears the loop's fields for a new session.
func (c *Consumer) reset(s *instance.Session) {
	c.clock, c.wake = store.Clock{}, time.Time{}
	c.asked = c.asked[:0]
	c.runs = handlers.WithNamespace(s.Context(), c.q.Namespace())
	c.session, c.lanes, c.seq, c.draining, c.keyed, c.owed = s, lanes{}, 0, false, false, nil
	// Under strict durability the first call claims nothing: it shows whether the replicas are there. Without them a
	// claimed task could not begin, and would lose an attempt.
	c.doubt = c.q.Strict()
	c.inflight, c.busy, c.crowd = make(map[string]*run, c.cfg.Concurrency), room{}, crowd{}
	results := make(chan result, c.cfg.Concurrency+ownWorkers)
	c.held, c.seat, c.watches = 0, nil, false
	c.results, c.workers = results, newWorkers(c.cfg.Labels, func(r *run) { c.work(r, results) })
	c.types, c.last = map[string]*taskType{}, nil
	c.answers, c.calling, c.portion, c.stale = make(chan answer, 1), false, firstPortion, 0
	c.came, c.heavy = time.Time{}, false
	c.settled, c.lately, c.relaxed = c.settled[:0], lately{}, false
	if c.cfg.Pool != nil {
		c.seat, c.lately.share = c.cfg.Pool.seat(), c.cfg.Pool.consumers
	}
	c.reads = reads(c.handlers, &c.cfg)
	c.cancels = newCancels()
	c.alarm, c.spare = newAlarm(), time.NewTimer(spareEvery)
}

// consume is the loop. It returns when the session drains or has ended.
//
// At most one call is under way. The loop sends the next one when it has runs to settle, keys to look after or claims in
// doubt, or when a worker is free and there may be due work. Otherwise it sleeps until the alarm rings, a run ends, or
// the session wakes it. While only workers for the dispatcher's own tasks are free, it looks for these from time to time.
func (c *Consumer) consume() {
	look := true // there may be due work
	own := false // there may be due work of the dispatcher's own, and all other workers are busy
	var retry <-chan time.Time
	var failures int
	var turn <-chan struct{}
	if c.seat != nil {
		turn = c.seat.bell
		defer c.seat.quit()
	}
	for {
		c.tally()
		if !c.calling && retry == nil {
			must := len(c.settled)+len(c.owed) > 0 || c.doubt
			if !look {
				c.standAside()
			}
			free := c.reserve(look, must)
			if must || look && (free.tasks > 0 || c.mustPass()) || own && free.own > 0 {
				select {
				case <-c.session.Draining():
					return
				case <-c.session.Context().Done():
					return
				default:
				}
				c.send(free)
				look, own = false, false
			}
		}
		results := c.results
		if c.calling && !(c.seat != nil && c.seat.lends()) {
			results = nil // they gather until the answer comes: to wake for each would cost more than a short run
		}
		select {
		case a := <-c.answers:
			c.collect()
			again, err := c.answered(a)
			if err != nil {
				failures++
				retry, look = time.After(c.troubled(err, failures)), true
			} else {
				failures, look = 0, look || again
				own = own || again && c.cfg.Pool == nil && c.starved()
			}
		case r := <-results:
			c.ended(r)
			c.gather()
			look = look || !c.canSleep()
		case <-c.spare.C:
			own = c.starved()
			c.spare.Reset(spareEvery)
		case <-turn: // the loop asks the pool again, or collects what has ended while a call lasts
		case <-c.alarm.timer.C:
			c.alarm.Near()
		case <-c.alarm.C:
			c.alarm.Rang()
			look = true
		case <-c.session.Work:
			look = c.woken() || look
		case <-c.cancels.bell:
			c.cancelRuns()
		case <-retry:
			retry = nil
			c.mayCall()
		case <-c.session.Draining():
			return
		case <-c.session.Context().Done():
			return
		}
	}
}

// mustPass reports whether Redis counts on this consumer for the next due task while others of its pool have all workers: a call lets
// another instance watch.
func (c *Consumer) mustPass() bool { return c.cfg.Pool != nil && c.watches }

// canSleep reports whether the loop knows when to look next. It does not know after a time in which no worker was free.
func (c *Consumer) canSleep() bool { return !c.alarm.at.IsZero() }

// woken handles a wake-up and reports whether to look now. If the wake-up names a later moment, woken sets the alarm to
// that moment.
func (c *Consumer) woken() bool {
	if c.session.ClaimsInDoubt() {
		c.doubt = true
	}
	due, ok := c.session.TakeWake()
	if !ok {
		return false
	}
	at := c.clock.Local(due)
	if due.IsZero() || !at.After(time.Now()) {
		return true
	}
	if c.calling && (c.wake.IsZero() || at.Before(c.wake)) {
		c.wake = at // Redis may have made the reply under way before this: the reply must not set the alarm later
	}
	c.wakeBy(at)
	return false
}

// wakeBy sets the alarm to at, unless at is zero or the alarm rings earlier already.
func (c *Consumer) wakeBy(at time.Time) {
	if !at.IsZero() && (c.alarm.at.IsZero() || at.Before(c.alarm.at)) {
		c.alarm.Set(at)
	}
}

// gather collects the results that are ready. It yields to the running handlers first: short runs then end together,
// and one call settles them all.
func (c *Consumer) gather() {
	if c.calling {
		return // the loop collects results until the answer comes
	}
	for quiet := 0; quiet < 2 && len(c.inflight) > 0; quiet++ {
		runtime.Gosched()
		if c.collect() > 0 {
			quiet = 0
		}
		if len(c.settled) >= queue.MaxBatch {
			return
		}
	}
}

// collect handles the results that are there, and returns how many there were.
func (c *Consumer) collect() (n int) {
	for ; ; n++ {
		select {
		case r := <-c.results:
			c.ended(r)
		default:
			return n
		}
	}
}

// ended handles the result of one run.
func (c *Consumer) ended(r result) {
	if c.inflight[r.run.task.ID] != r.run {
		return // abandon handed the task back before the handler returned
	}
	c.leave(r.run)
	if r.drop {
		return
	}
	c.keyed = c.keyed || r.run.task.Key != ""
	if r.run.again != 0 {
		r.settle.Fence = r.run.again
	}
	c.settled = append(c.settled, r.settle)
}

// leave takes a run off those that are under way.
func (c *Consumer) leave(r *run) {
	delete(c.inflight, r.task.ID)
	c.busy.add(r.task.Type, -1)
	c.crowd.add(r.task, -1)
}

// laneClaims lists the lanes of a call: those that the call may claim from, and those into which the script may have to
// put a task back.
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

// plan sets the alarm from a reply, and reports whether to look again at once. Free is how many workers are free once the
// claimed tasks have begun.
func (c *Consumer) plan(r *queue.CycleReply, free int) (again bool) {
	switch {
	case !r.MayClaim:
		c.alarm.Set(time.Time{}) // the session wakes the loop when this instance may claim
		return false
	case r.LeftDue:
		c.alarm.Set(time.Time{})
		return free > 0
	case r.Watching && !r.NextDue.IsZero():
		c.alarm.Set(c.clock.Local(r.NextDue))
	case free > 0 && !r.NextDue.IsZero(): // another instance watches; if it leaves or a message is lost, this one looks later
		c.alarm.Set(c.clock.Local(r.NextDue.Add(backstop + rand.N(backstop/2))))
	default:
		c.alarm.Set(time.Time{})
	}
	return false
}
