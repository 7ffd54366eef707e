package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// backstop is how long after a due time an instance looks while another one watches for it.
const backstop = time.Second

// callTimeout bounds one call to Redis. A shorter lease bounds it instead. A connection that is dead without an error must
// not block this instance for longer, while other connections still work.
const callTimeout = 5 * time.Second

// batchBytes bounds the records and notes that one call settles. A retry carries its task's record, a note its run's output, and
// a call too large to be sent in time would fail and be repeated for ever.
const batchBytes = 4 << 20

// longestPause is the longest pause between two tries while Redis is away. Once Redis is back, due tasks wait for the
// next try, so it is short.
const longestPause = 200 * time.Millisecond

// firstPortion is the most tasks that the first call of a burst claims. After each call that leaves due work behind, the
// next call claims up to growth times as many (and wanted may add the rest). So the first tasks of a burst do not wait until
// Redis has found the last ones, and the last ones wait for few calls.
const (
	firstPortion = 128
	growth       = 4
)

// mostStale is how many calls in a row may claim nothing because the list of lanes has changed since the consumer read
// it. Then a call claims from the lanes that the consumer knows, so that a caller that adds lanes all the time does not
// stop the consumer.
const mostStale = 3

// answer is the outcome of a call. At most one call is under way: meanwhile the results of runs collect in settled.
type answer struct {
	sent, came time.Time
	settled    int // how many settlements the call carried: the first of c.settled
	want       int // most tasks that the call was to claim, besides the dispatcher's own
	reply      *queue.CycleReply
	err        error
}

// errSlept replaces an answer that lay on this machine while the machine was suspended. Another instance may hold the
// claims by now, though no timer here has noticed that the lease ran out. The answer counts as lost: the consumer asks
// Redis which claims it holds before it begins a run.
var errSlept = errors.New("the machine was suspended, or its clock was set, while redis answered")

// slept returns for how long the machine was suspended since a moment. During a suspension the wall clock moves on; the
// monotonic clock and all timers stand still. If the wall clock was set meanwhile, slept returns by how much.
func slept(since time.Time) time.Duration {
	now := time.Now()
	return now.Round(0).Sub(since.Round(0)) - now.Sub(since)
}

// send starts a call on a goroutine of its own. The call settles the first of c.settled and claims tasks for the free workers. Its
// answer comes on c.answers.
func (c *Consumer) send(free room) {
	c.calling, c.wake = true, time.Time{}
	if c.seat != nil {
		c.seat.calls()
	}
	c.spare.Reset(spareEvery)
	c.watches = false
	c.session.Watch("") // the script takes this instance off the watch: the heartbeat must not take that for a lost write
	ctx, done := context.WithTimeout(c.session.Context(), min(c.session.Lease(), callTimeout))
	if c.lanes.count == 0 && c.lanes.version == 0 || len(c.owed) > 0 { // an owed key's task waits in a lane that this consumer does not know yet
		if err := c.loadLanes(ctx); err != nil {
			done()
			c.answers <- answer{err: err}
			return
		}
	}
	// With claims in doubt, this call claims nothing. Its larger Seq makes every earlier call stale: one that is still on
	// its way to Redis can claim nothing after caughtUp has read the claims.
	if c.doubt {
		free = room{}
	}
	c.seq++
	batch := c.batch()
	if c.draining && (c.relaxed || onlyHandedBack(batch)) {
		// No run begins any more, and either the wait for replicas is over or no settlement says that a run ended:
		// nothing is left for which the call must wait until replicas have it.
		ctx = store.Relaxed(ctx)
	}
	req := &queue.CycleRequest{
		Instance: c.session.ID, Release: c.session.Release, Gen: c.session.Gen, Seq: c.seq, Want: c.wanted(free.tasks), Settle: batch,
		Own: max(free.own, 0), Bulk: max(free.bulk, 0), Workers: c.cfg.Concurrency, Taken: c.crowd.heavy(c.cfg.Concurrency),
		Lanes: c.laneClaims(batch), Reads: c.reads, Owed: c.owed,
	}
	if c.stale < mostStale { // else 0: claim even if the list of lanes has changed
		req.LanesVer = c.lanes.version
	}
	session := c.session
	go func() {
		defer done()
		a := answer{sent: time.Now(), settled: len(batch), want: req.Want}
		a.reply, a.err = store.Within(ctx, func() (*queue.CycleReply, error) { return c.cycle(ctx, session, req) })
		a.came = time.Now()
		c.answers <- a
	}()
}

// cycle makes a call, and tells the session how much due work is left.
func (c *Consumer) cycle(ctx context.Context, session *instance.Session, r *queue.CycleRequest) (*queue.CycleReply, error) {
	out, err := c.q.Cycle(ctx, r)
	switch {
	case err != nil:
		session.Lags(true)
	case out.MayClaim:
		session.Lags(out.LeftDue || r.Want > 0 && r.Want <= ofUsers(out))
		if r.Want > 0 && !out.LeftDue {
			session.CaughtUp(out.Now)
		}
	}
	return out, err
}

// batch returns the settlements of the next call: the first ones that fit, and at least one if there is one.
func (c *Consumer) batch() []queue.Settlement {
	n, size := 0, 0
	for n < min(len(c.settled), queue.MaxBatch) {
		if size += len(c.settled[n].Record) + len(c.settled[n].Note); n > 0 && size > batchBytes {
			break
		}
		n++
	}
	return c.settled[:n]
}

// answered handles an answer, begins the claimed runs, and reports whether to look again at once. Settlements stay in
// c.settled until a call has succeeded.
func (c *Consumer) answered(a answer) (again bool, err error) {
	c.calling = false
	if a.err == nil && c.slept(a.sent) > c.session.Lease()/10 {
		a.err = errSlept
	}
	c.observe(&a)
	c.regain(a.reply)
	if a.err != nil {
		c.release()
		// The call was given up, and its goroutine may still read the old slice. Tried marks each settlement that Redis
		// may have accepted, unless the call surely was not sent.
		c.settled = slices.Clone(c.settled)
		for i := range c.settled[:a.settled] {
			c.settled[i].Tried = c.settled[i].Tried || !store.NotSent(a.err)
		}
		return false, a.err
	}
	r := a.reply
	c.clock.Set(a.sent, a.came, r.Now)
	c.reportVoid(r.Void)
	// r.Refused indexes the settlements that were sent: refused must read them before they leave the slice.
	refused := c.refused(r)
	c.lately.add(c.settled[:a.settled])
	c.settled = append(c.settled[:copy(c.settled, c.settled[a.settled:])], refused...)
	c.keyed = c.keyed && len(c.settled) > 0
	if len(c.owed) > 0 {
		r.Owed = nil // this call looked after them: the leader looks after a task that still waits
	}
	c.owed = r.Owed
	if r.LanesVer == c.lanes.version {
		c.stale = 0
	}
	c.portion = c.nextPortion(&a)
	if r.LeftDue && !c.draining {
		c.reserve(false, true)
	}
	left := c.free().less(r.Claimed)
	free := left.tasks
	again = c.plan(r, c.mayLook(free))
	switch full := ofUsers(r) >= a.want; {
	case !r.MayClaim:
		c.session.Refused()
	case full && a.want > 0:
		// The script stopped at the number asked for. It may not have looked at the other lanes, so NextDue may lie too
		// late, and no instance may watch for them.
		again = again || c.mayLook(free) > 0
	// The script saw all lanes and left no due work. From now on the consumer relies on being woken, and the heartbeat
	// checks that Redis still knows it.
	case !full && !r.LeftDue:
		c.session.Watch(c.reads)
		c.watches = true
	}
	c.wakeBy(c.wake)
	ahead := again && r.LeftDue && c.worthwhile(free) && !c.draining && !c.doubt && len(c.owed) == 0 && r.LanesVer == c.lanes.version
	// More due work is there than this call claimed, and nothing needs care first: claim the next batch while this one
	// begins.
	if ahead {
		for _, t := range r.Claimed { // they have workers, though accept counts them only below
			c.crowd.add(t, 1)
		}
		c.send(left)
		for _, t := range r.Claimed {
			c.crowd.add(t, -1)
		}
	}
	for _, t := range r.Claimed {
		c.accept(t)
	}
	again = again || c.free().tasks > max(free, 0) // accept took fewer workers than planned: some tasks run here already
	for _, m := range r.Malformed {
		c.malformed(m)
	}
	c.cancelAgain()
	if ahead {
		return false, nil
	}
	c.release()
	again = again || c.seat != nil && r.MayClaim && a.want == 0 // no worker was free, so nobody looked
	c.gather()
	if again, err = c.caughtUp(r, again); err == nil {
		c.mayCall()
	}
	return again, err
}

// mayLook is for how many tasks more the consumer may look: with a pool for one at least, because the pool decides when.
func (c *Consumer) mayLook(free int) int {
	if c.seat != nil {
		return max(free, 1)
	}
	return free
}

// ofUsers counts the tasks of a reply that are not the dispatcher's own.
func ofUsers(r *queue.CycleReply) int {
	var n room
	for _, t := range r.Claimed {
		n.add(t.Type, 1)
	}
	for i := range r.Malformed {
		n.add(r.Malformed[i].Lane.Type, 1)
	}
	return n.tasks
}

// wanted returns how many tasks the next call claims: a portion, or half as many more if no worker is free after that. The rest of
// a burst is then not left to one call more.
func (c *Consumer) wanted(free int) int {
	n := c.portion
	if !c.heavy && n > firstPortion && free <= n+n/2 {
		n = queue.MaxBatch
	}
	return max(min(free, n), 0)
}

// worthwhile reports whether workers are free for a portion. In a burst whose calls hold up the runs, the first portion is
// enough: the tasks that are left wait for nothing else.
func (c *Consumer) worthwhile(free int) bool {
	if c.heavy {
		return free >= c.portion
	}
	return free >= min(c.portion, firstPortion)
}

// nextPortion returns the most tasks that the next call claims. If the runs hold up the calls, it is at most half of the
// workers: then the other half is claimed while the first begins. If the calls hold up the runs it is not, for each call has
// a cost of its own.
func (c *Consumer) nextPortion(a *answer) int {
	if !a.reply.LeftDue { // the burst is over
		c.heavy, c.came = false, time.Time{}
		return firstPortion
	}
	if c.doubt || a.reply.LanesVer != c.lanes.version && ofUsers(a.reply) == 0 { // the call looked for no tasks
		c.came = time.Time{}
		return c.portion
	}
	if c.heavy {
		c.heavy = c.busy.tasks > 0 // else all runs ended while one call was under way
	} else if !c.came.IsZero() {
		c.heavy = a.sent.Sub(c.came) > a.came.Sub(a.sent)
	}
	c.came = a.came
	n := min(growth*max(c.portion, firstPortion), queue.MaxBatch)
	if c.heavy {
		n = min(n, max(c.cfg.Concurrency/2, 1))
	}
	return n
}

// observe tells the observer of a call that was to claim tasks.
func (c *Consumer) observe(a *answer) {
	switch o := c.cfg.Observer; {
	case o == nil || a.want == 0 && (a.err != nil || len(a.reply.Claimed) == 0):
	case a.err != nil:
		o.Claimed(0, false, a.err)
	default:
		o.Claimed(len(a.reply.Claimed)+len(a.reply.Malformed), a.reply.MayClaim, nil)
	}
}

// reportVoid logs, and records as an event, the runs whose claims were void when they were settled. They have run, and may
// run again. It leaves out two kinds: a settlement that an earlier call carried (its reply was lost, and Redis may have
// accepted it then), and a task that was only handed back.
func (c *Consumer) reportVoid(void []int) {
	var ids []string
	for _, n := range void {
		if s := &c.settled[n]; !s.Tried && !handedBack(s) {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	c.log.Warn().Int("runs", len(ids)).Strs("tasks", ids[:min(len(ids), 20)]).Msg("settled in vain: this instance no longer held the claim")
	session := c.session
	go func() {
		ctx, done := context.WithTimeout(session.Context(), callTimeout)
		defer done()
		if err := c.q.SettledInVain(ctx, session.ID, ids); err != nil && ctx.Err() == nil {
			c.log.Debug().Err(err).Msg("could not record that as an event")
		}
	}()
}

// caughtUp reads from Redis the data that is out of date here by a reply: the claims, after a lost reply or lost writes, or
// the list of lanes. It reports whether to look again at once.
func (c *Consumer) caughtUp(r *queue.CycleReply, again bool) (bool, error) {
	if c.doubt {
		return true, c.adopt(c.session.Context(), r)
	}
	ctx, done := context.WithTimeout(c.session.Context(), callTimeout)
	defer done()
	if r.LanesVer != c.lanes.version {
		c.stale++
		return true, c.loadLanes(ctx)
	}
	return again, nil
}

func (c *Consumer) loadLanes(ctx context.Context) error {
	return c.meanwhile(func() error { return c.lanes.load(ctx, c.q, c.handlers, &c.cfg) })
}

// accept begins the run of a claimed task. While the instance drains, accept hands the task back instead. If the lease
// is lost, accept drops the task: another instance recovers it.
func (c *Consumer) accept(t *task.Task) {
	switch {
	case c.session.Context().Err() != nil:
		return
	case c.draining, c.seat != nil && !c.mayBegin(t.Type): // the call lasted so long that others have the workers
		c.handBack(t, false)
		return
	}
	t.Release = c.session.Release
	t.Secret = secret.Join(t.Secret, c.cfg.Secret[t.Type])
	if err := c.q.Seal().OpenTask(t); err != nil && c.inflight[t.ID] == nil {
		c.unopened(t, err)
		return
	}
	c.start(c.runs, t)
}
