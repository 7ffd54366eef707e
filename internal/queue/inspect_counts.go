package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// LaneCount counts the tasks in a lane's due set, without those that wait for their key.
type LaneCount struct {
	Lane    Lane
	Due     int64     // all tasks, also those due in the future
	Overdue int64     // tasks whose due time has come
	Late    int64     // of those, the tasks that have waited longer than LateAfter
	Head    time.Time // the earliest due time; zero if the lane is empty
}

// Counts is the state of a partition in numbers, as of about Now.
type Counts struct {
	Now   time.Time // by the clock of Redis
	Lanes []LaneCount

	Due     int64 // over all lanes
	Overdue int64
	Late    int64
	Held    int64 // due tasks that wait for their key
	Running int64
	Dead    int64
	Done    int64 // finished tasks that are kept

	// Finished, Retried and Died are totals since the partition was made.
	Finished, Retried, Died int64

	Schedules int64
	Retired   int64 // schedules that are kept until their release is in force again
}

// LateAfter is how long a due task waits for a worker until it counts as late.
const LateAfter = time.Minute

// Counts counts the tasks of a partition. It takes two round trips, three if a task is late, and O(lanes + instances), however many tasks there are.
func (q *Queue) Counts(ctx context.Context) (Counts, error) {
	c, err := q.counts(ctx)
	if err != nil {
		return Counts{}, fmt.Errorf("count tasks: %w", err)
	}
	return c, nil
}

func (q *Queue) counts(ctx context.Context) (c Counts, err error) {
	k := &q.keys
	pipe := q.rdb.Pipeline()
	now, err := store.PipeNow(ctx, q.rdb, k.Meta, pipe)
	if err != nil {
		return c, err
	}
	names := pipe.HKeys(ctx, k.Lanes)
	members := pipe.HGetAll(ctx, k.Members)
	orphans := pipe.ZRange(ctx, k.Orphans, 0, -1)
	held, dead, done := pipe.ZCard(ctx, k.Held), pipe.ZCard(ctx, k.Dead), pipe.ZCard(ctx, k.Done)
	totals := pipe.HMGet(ctx, k.Meta, "done", "retried", "died")
	schedules, retired := pipe.HLen(ctx, k.Schedules), pipe.HLen(ctx, k.Retired)
	if err := exec(ctx, pipe); err != nil {
		return c, err
	}
	c = Counts{
		Now: now(), Held: held.Val(), Dead: dead.Val(), Done: done.Val(), Schedules: schedules.Val(),
		Retired: retired.Val(),
	}
	for i, total := range []*int64{&c.Finished, &c.Retried, &c.Died} {
		s, _ := totals.Val()[i].(string)
		*total, _ = strconv.ParseInt(s, 10, 64)
	}

	pipe = q.rdb.Pipeline()
	ms := strconv.FormatInt(c.Now.UnixMilli(), 10)
	var cards, overdue []*redis.IntCmd
	var heads []*redis.ZSliceCmd
	for _, name := range names.Val() {
		l, err := ParseLane(name)
		if err != nil {
			continue
		}
		c.Lanes = append(c.Lanes, LaneCount{Lane: l})
		key := k.Due(l)
		cards = append(cards, pipe.ZCard(ctx, key))
		overdue = append(overdue, pipe.ZCount(ctx, key, "-inf", ms))
		heads = append(heads, pipe.ZRangeWithScores(ctx, key, 0, 0))
	}
	var running []*redis.IntCmd
	var seqs []*redis.BoolCmd
	for _, g := range generations(members.Val(), orphans.Val()) {
		running = append(running, pipe.HLen(ctx, k.Running(g.gen)))
		seqs = append(seqs, pipe.HExists(ctx, k.Running(g.gen), ""))
	}
	if err := exec(ctx, pipe); err != nil {
		return c, err
	}
	for i := range c.Lanes {
		l := &c.Lanes[i]
		l.Due, l.Overdue = cards[i].Val(), overdue[i].Val()
		if head := heads[i].Val(); len(head) > 0 {
			l.Head = store.ScoreTime(head[0].Score)
		}
		c.Due += l.Due
		c.Overdue += l.Overdue
	}
	if err := q.countLate(ctx, &c); err != nil {
		return c, err
	}
	slices.SortFunc(c.Lanes, func(a, b LaneCount) int {
		return cmp.Or(cmp.Compare(a.Lane.Queue, b.Lane.Queue), cmp.Compare(b.Lane.Priority, a.Lane.Priority),
			cmp.Compare(a.Lane.Type, b.Lane.Type))
	})
	for i := range running {
		c.Running += running[i].Val()
		if seqs[i].Val() { // the entry that holds the last seq
			c.Running--
		}
	}
	return c, nil
}

// countLate counts the late tasks of the lanes whose first task is late.
func (q *Queue) countLate(ctx context.Context, c *Counts) error {
	since := c.Now.Add(-LateAfter)
	pipe := q.rdb.Pipeline()
	late := map[*LaneCount]*redis.IntCmd{}
	for i := range c.Lanes {
		if l := &c.Lanes[i]; l.Due > 0 && l.Head.Before(since) {
			late[l] = pipe.ZCount(ctx, q.keys.Due(l.Lane), "-inf", "("+strconv.FormatInt(since.UnixMilli(), 10))
		}
	}
	if len(late) == 0 {
		return nil
	}
	if err := exec(ctx, pipe); err != nil {
		return err
	}
	for l, n := range late {
		l.Late = n.Val()
		c.Late += l.Late
	}
	return nil
}

func formatScore(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

// Limited returns of which types some tasks run that count in a limit of their type.
func (q *Queue) Limited(ctx context.Context, types []string) (map[string]bool, error) {
	limited := map[string]bool{}
	for part := range slices.Chunk(types, MaxBatch) {
		fields := make([]string, len(part))
		for i, typ := range part {
			fields[i] = "t:" + typ
		}
		counts, err := q.rdb.HMGet(ctx, q.keys.Active, fields...).Result()
		if err != nil {
			return nil, fmt.Errorf("look at the limits of types: %w", store.Classify(err))
		}
		for i, n := range counts {
			limited[part[i]] = n != nil
		}
	}
	return limited, nil
}
