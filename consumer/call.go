package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// backstop is how long after a due time one looks that others watch.
const backstop = time.Second

// callTimeout bounds one call to Redis. With a shorter lease that does: a connection that is dead and does not say so must
// not hold up for longer what others still get through.
const callTimeout = 5 * time.Second

// batchBytes bounds what one call settles: a retry carries its record, and a call that cannot be sent in time would be
// made again for ever.
const batchBytes = 4 << 20

// longestPause is between two tries while Redis is away: what is due waits for the next one after it is back.
const longestPause = 200 * time.Millisecond

// firstPortion is how many tasks a call claims at most, that finds the first of many. Each call that leaves due work
// behind is followed by one for twice as many: the first of a burst are not to wait until Redis has found the last.
const firstPortion = 128

// mostStale is how many calls in a row may claim nothing because the list of lanes is another than the one that is known.
// Then one claims all the same, so that who makes lanes all the time holds nobody up.
const mostStale = 3

// answer is what came of a call. At most one call is under way: results gather until it is answered.
type answer struct {
	sent, came time.Time
	settled    int // of the settlements, the first ones
	want       int // most tasks it was to claim
	reply      *queue.CycleReply
	err        error
}

// errSlept is what comes of an answer that lay here while the machine was suspended: by now others may have what it gave,
// though no timer here has noticed that the lease ran out. It counts as lost, so that Redis is asked what is held before
// anything is begun.
var errSlept = errors.New("the machine was suspended, or its clock set, while redis answered")

// slept is for how long the machine was suspended since a moment: timers and the monotonic clock stood still, the wall
// clock did not. If that was set meanwhile, it is by how much.
func slept(since time.Time) time.Duration {
	now := time.Now()
	return now.Round(0).Sub(since.Round(0)) - now.Sub(since)
}

// send makes a call under way that settles what there is to settle and wants up to so many tasks.
func (c *Consumer) send(want int) {
	c.calling, c.wake = true, time.Time{}
	c.stay.Watch("") // Redis takes it out of those who watch
	ctx, done := context.WithTimeout(c.stay.Context(), min(c.stay.Lease(), callTimeout))
	if c.lanes.count == 0 && c.lanes.version == 0 {
		if err := c.lanes.load(ctx, c.q, c.handlers, &c.cfg); err != nil {
			done()
			c.answers <- answer{err: err}
			return
		}
	}
	if c.doubt {
		want = 0 // first a call that makes every earlier one stale
	}
	c.seq++
	batch := c.batch()
	if c.draining && (c.relaxed || onlyHandedBack(batch)) {
		ctx = store.Relaxed(ctx) // nothing is begun any more, and nothing is said to have run
	}
	req := &queue.CycleRequest{
		Instance: c.stay.ID, Release: c.stay.Release, Gen: c.stay.Gen, Seq: c.seq, Want: min(want, c.portion), Settle: batch,
		Lanes: c.laneClaims(batch), Reads: c.reads, Owed: c.owed,
	}
	if c.stale < mostStale {
		req.LanesVer = c.lanes.version
	}
	go func() {
		defer done()
		a := answer{sent: time.Now(), settled: len(batch), want: req.Want}
		a.reply, a.err = store.Within(ctx, func() (*queue.CycleReply, error) { return c.q.Cycle(ctx, req) })
		a.came = time.Now()
		c.answers <- a
	}()
}

// batch is what the next call settles: at least one, if there is any.
func (c *Consumer) batch() []queue.Settlement {
	n, size := 0, 0
	for n < min(len(c.settled), queue.MaxBatch) {
		if size += len(c.settled[n].Record); n > 0 && size > batchBytes {
			break
		}
		n++
	}
	return c.settled[:n]
}

// answered takes in an answer and reports whether to look again at once. Settlements stay until a call has succeeded.
func (c *Consumer) answered(a answer) (again bool, err error) {
	c.calling = false
	if a.err == nil && c.slept(a.sent) > c.stay.Lease()/10 {
		a.err = errSlept
	}
	if a.err != nil {
		c.settled = slices.Clone(c.settled) // a call that was given up may still be reading the other
		for i := range c.settled[:a.settled] {
			c.settled[i].Tried = c.settled[i].Tried || !store.NotSent(a.err)
		}
		return false, a.err
	}
	r := a.reply
	c.clock.Set(a.sent, a.came, r.Now)
	c.vain(r.Void)
	refused := c.refused(r)
	c.lately.add(c.settled[:a.settled])
	c.settled = append(c.settled[:copy(c.settled, c.settled[a.settled:])], refused...)
	c.keyed = c.keyed && len(c.settled) > 0
	if len(c.owed) > 0 {
		r.Owed = nil // asked for twice: who still waits is left to the leader
	}
	c.owed = r.Owed
	if r.LanesVer == c.lanes.version {
		c.stale = 0
	}
	c.portion = min(2*c.portion, queue.MaxBatch)
	if !r.LeftDue {
		c.portion = firstPortion
	}
	free := c.free() - len(r.Claimed)
	again = c.plan(r, free)
	switch full := len(r.Claimed)+len(r.Malformed) >= a.want; {
	case !r.MayClaim:
		c.stay.Refused()
	case full && a.want > 0:
		again = again || free > 0 // it took all it was to take, and may have said of nothing else what is due, nor watch
	case !full && !r.LeftDue:
		c.stay.Watch(c.reads)
	}
	c.wakeBy(c.wake)
	ahead := again && r.LeftDue && free >= c.portion && !c.draining && !c.doubt && len(c.owed) == 0 && r.LanesVer == c.lanes.version
	if ahead { // the next batch is claimed while this one runs
		c.send(free)
	}
	for _, t := range r.Claimed {
		c.accept(t)
	}
	again = again || c.free() > max(free, 0) // some run here already, and took no worker
	for _, m := range r.Malformed {
		c.malformed(m)
	}
	c.cancelAgain()
	if ahead {
		return false, nil
	}
	c.gather()
	return c.caughtUp(r, again)
}

// vain reports runs whose claims were not held any more when they were settled: they have run, and may run once more. A
// settlement that an earlier call carried, whose reply was lost, may have been taken then, and says nothing.
func (c *Consumer) vain(void []int) {
	var ids []string
	for _, n := range void {
		if s := &c.settled[n]; !s.Tried && !handedBack(s) {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	c.log.Warn().Int("runs", len(ids)).Strs("tasks", ids[:min(len(ids), 20)]).Msg("settled in vain: the claim was not held any more")
	stay := c.stay
	go func() {
		ctx, done := context.WithTimeout(stay.Context(), callTimeout)
		defer done()
		if err := c.q.SettledInVain(ctx, stay.ID, ids); err != nil && ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("the event that says so is missing")
		}
	}()
}

// caughtUp reads what a reply says has changed: what is held after a lost reply or lost writes, or the lanes there are.
func (c *Consumer) caughtUp(r *queue.CycleReply, again bool) (bool, error) {
	if c.doubt {
		return true, c.adopt(c.stay.Context(), r)
	}
	ctx, done := context.WithTimeout(c.stay.Context(), callTimeout)
	defer done()
	switch {
	case r.LanesVer != c.lanes.version:
		c.stale++
		return true, c.lanes.load(ctx, c.q, c.handlers, &c.cfg)
	case len(c.owed) > 0:
		return true, c.lanes.load(ctx, c.q, c.handlers, &c.cfg)
	}
	return again, nil
}

// accept begins a run. One that is claimed while the instance drains is handed back, and dropped if its lease is lost.
func (c *Consumer) accept(t *task.Task) {
	switch {
	case c.stay.Context().Err() != nil:
		return
	case c.draining:
		c.handBack(t, false)
		return
	}
	t.Release = c.stay.Release
	c.start(c.stay.Context(), t)
}

// adopt takes up what this generation holds without knowing it. A run that this instance has settled, in a call that Redis has
// lost since, is settled again. A task that was claimed by a call whose reply was lost is begun; if there is no free worker,
// or nothing may be begun now, it is handed back.
func (c *Consumer) adopt(ctx context.Context, reply *queue.CycleReply) error {
	claims, err := store.Within(ctx, func() ([]queue.Claim, error) {
		claims, _, err := c.q.Claims(ctx, c.stay.Gen, c.stay.ID)
		return claims, err
	})
	if err != nil {
		return err
	}
	ended := make(map[string]bool, len(c.settled))
	for i := range c.settled {
		ended[c.settled[i].ID] = true
	}
	n := 0
	settled := c.lately.by()
	for _, claim := range claims {
		t := claim.Task
		if r := c.inflight[t.ID]; r != nil {
			if t.Fence != r.task.Fence {
				r.again = t.Fence // claimed once more, by a call whose reply was lost
			}
			continue
		}
		if ended[t.ID] {
			continue
		}
		n++
		before, ok := settled[settledKey{t.ID, t.Fence}]
		switch {
		case ok:
			c.keyed = c.keyed || t.Key != ""
			before.Tried = true
			c.settled = append(c.settled, before)
		case claim.Err != nil:
			c.malformed(queue.Malformed{ID: t.ID, Fence: t.Fence, Record: claim.Record, Err: claim.Err})
		case c.draining || !reply.MayClaim || c.free() <= 0:
			c.handBack(t, false)
		default:
			t.Claimed = reply.Now // it begins now, which may be long after the call that was lost
			c.accept(t)
		}
	}
	c.doubt = false
	if n > 0 {
		c.log.Info().Int("tasks", n).Msg("took up what redis believes is held here: a reply or its last writes were lost")
	}
	return nil
}

// malformed deals with a record that cannot be read: one of a newer format waits for a newer release, a damaged one is
// dead.
func (c *Consumer) malformed(m queue.Malformed) {
	c.log.Error().Err(m.Err).Str("task", m.ID).Msg("unreadable task record")
	s := queue.Settlement{ID: m.ID, Fence: m.Fence, Outcome: queue.Died, Record: []byte(m.Record), Note: history.Unread(m.ID)}
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
	case errors.Is(err, store.ErrWrongType):
		c.stay.Mend(err)
	case errors.Is(err, queue.ErrStale), c.stay.Context().Err() != nil:
	case failures == 1:
		c.log.Warn().Err(err).Msg("cannot take or settle tasks: trying again")
	}
	d := min(longestPause, 10*time.Millisecond<<min(failures, 10))
	return d/2 + rand.N(d/2+1)
}
