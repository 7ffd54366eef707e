package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// lastID sorts after every ID: an ID is UTF-8.
const lastID = "\xff"

// dueSet is a position in one lane's due set.
type dueSet struct {
	key  string
	next int64     // the rank to read next
	rows []redis.Z // read, and not used yet
	end  bool      // all is read
}

// listDue merges the due sets of all lanes that o asks for, and goes on with the tasks that wait for their key.
func (q *Queue) listDue(ctx context.Context, o *ListOptions, after cursor) (Page, error) {
	all, _, err := q.Lanes(ctx)
	if err != nil {
		return Page{}, err
	}
	var keys []string
	sets := map[string]bool{}
	for _, l := range all {
		if o.ofLane(l) {
			keys = append(keys, q.keys.Due(l))
			sets[q.keys.Due(l)] = true
		}
	}
	var p Page
	if after.kind != 'h' {
		last, end, err := q.mergeDue(ctx, &p, keys, o, after)
		if err != nil {
			return Page{}, err
		}
		if !end {
			p.Next = last.String()
			return p, nil
		}
		after = cursor{}
	}
	if o.later() {
		return p, nil
	}
	return p, q.appendHeld(ctx, &p, sets, o, after)
}

// mergeDue appends due tasks to p, in due order. It returns the last place that it looked at, and whether that is the end.
func (q *Queue) mergeDue(ctx context.Context, p *Page, keys []string, o *ListOptions, after cursor) (cursor, bool, error) {
	sources := make([]*dueSet, len(keys))
	for i, key := range keys {
		sources[i] = &dueSet{key: key}
	}
	if now := float64(store.Ms(o.Now)); o.later() && after.score <= now {
		after = cursor{kind: 't', score: now, member: lastID}
	}
	if after.kind != 0 && len(keys) > 0 {
		ranks, err := q.seek(ctx, keys, after, true)
		if err != nil {
			return after, false, err
		}
		for i, rank := range ranks {
			sources[i].next = rank
		}
	}
	want, batch := o.Limit, o.Limit
	if o.Schedule != "" || o.Backfill || o.Key != "" || o.Part == Retried {
		want = 1000 // few of many tasks will match: read further ahead
	}
	if o.Key != "" || o.Part == Retried {
		batch = 1000 // only the record tells
	}
	chunk := int64(min(want, max(16, 2*want/max(len(keys), 1))))
	for looked := 0; !p.isFull(o) && looked < scanMost; {
		var rows []row
		end := false
		for ; len(rows) < batch && looked < scanMost; looked++ {
			if err := q.refill(ctx, sources, chunk); err != nil {
				return after, false, err
			}
			first := earliest(sources)
			if end = first == nil || o.Part == DueNow && first.rows[0].Score > float64(store.Ms(o.Now)); end {
				break
			}
			r := rowOf(first.rows[0])
			first.rows = first.rows[1:]
			after = cursor{kind: 't', score: r.score, member: r.id}
			if o.mayBe(r.id) {
				r.found.State = task.Due
				rows = append(rows, r)
			}
		}
		used, err := q.appendRecords(ctx, p, rows, o)
		if err == nil && used < len(rows) { // the page is full
			last := rows[used-1]
			return cursor{kind: 't', score: last.score, member: last.id}, false, nil
		}
		if err != nil || end {
			return after, end, err
		}
	}
	return after, false, nil
}

// refill reads on in each due set whose rows are used up, in one round trip.
func (q *Queue) refill(ctx context.Context, sources []*dueSet, chunk int64) error {
	var pipe redis.Pipeliner
	var dry []*dueSet
	var reads []*redis.ZSliceCmd
	for _, s := range sources {
		if len(s.rows) == 0 && !s.end {
			if pipe == nil {
				pipe = q.rdb.Pipeline()
			}
			dry = append(dry, s)
			reads = append(reads, pipe.ZRangeWithScores(ctx, s.key, s.next, s.next+chunk-1))
		}
	}
	if pipe == nil {
		return nil
	}
	if err := exec(ctx, pipe); err != nil {
		return err
	}
	for i, s := range dry {
		s.rows = reads[i].Val()
		s.next += int64(len(s.rows))
		s.end = int64(len(s.rows)) < chunk
	}
	return nil
}

// earliest returns the due set whose next task comes first: by due time, then by ID, as Redis sorts a zset. It returns nil
// at the end.
func earliest(sources []*dueSet) *dueSet {
	var best *dueSet
	for _, s := range sources {
		if len(s.rows) > 0 && (best == nil || before(s.rows[0], best.rows[0])) {
			best = s
		}
	}
	return best
}

func before(a, b redis.Z) bool {
	if a.Score != b.Score {
		return a.Score < b.Score
	}
	return rowOf(a).id < rowOf(b).id
}

// seek returns, for each zset, the rank of the first member at the cursor's place or after it (with past: only after it).
// The cursor's own member may have left. Millions of members may share one score, so seek searches by halving.
func (q *Queue) seek(ctx context.Context, keys []string, c cursor, past bool) ([]int64, error) {
	low, high := make([]int64, len(keys)), make([]int64, len(keys))
	pipe := q.rdb.Pipeline()
	counts := make([]*redis.IntCmd, 0, 2*len(keys))
	score := formatScore(c.score)
	for _, key := range keys {
		counts = append(counts, pipe.ZCount(ctx, key, "-inf", "("+score), pipe.ZCount(ctx, key, "-inf", score))
	}
	if err := exec(ctx, pipe); err != nil {
		return nil, err
	}
	for i := range keys {
		low[i], high[i] = counts[2*i].Val(), counts[2*i+1].Val()
	}
	for {
		pipe := q.rdb.Pipeline()
		middles := make([]*redis.StringSliceCmd, len(keys))
		open := false
		for i, key := range keys {
			if low[i] < high[i] {
				open = true
				m := (low[i] + high[i]) / 2
				middles[i] = pipe.ZRange(ctx, key, m, m)
			}
		}
		if !open {
			return low, nil
		}
		if err := exec(ctx, pipe); err != nil {
			return nil, err
		}
		for i, m := range middles {
			if m == nil {
				continue
			}
			middle := (low[i] + high[i]) / 2
			if v := m.Val(); len(v) > 0 && (v[0] < c.member || past && v[0] == c.member) {
				low[i] = middle + 1
			} else {
				high[i] = middle
			}
		}
	}
}

// appendHeld fills the page with tasks that wait for their key, sorted by key.
func (q *Queue) appendHeld(ctx context.Context, p *Page, sets map[string]bool, o *ListOptions, after cursor) error {
	low, high := "-", "+"
	if o.Key != "" { // the members of a key lie together
		low, high = "["+o.Key+heldSep, "("+o.Key+heldEnd
	}
	if after.kind == 'h' && after.member != "" {
		low = "(" + after.member
	}
	for looked := 0; ; {
		members, err := q.rdb.ZRangeByLex(ctx, q.keys.Held, &redis.ZRangeBy{Min: low, Max: high, Count: int64(o.Limit)}).Result()
		if err != nil {
			return store.Classify(err)
		}
		rows := make([]row, 0, len(members))
		places := make([]string, 0, len(members))
		for _, m := range members {
			id, due, set, ok := parseHeld(m)
			if ok && sets[set] && o.mayBe(id) {
				rows = append(rows, row{id: id, score: due, held: m, found: Found{State: task.Due, Held: true}})
				places = append(places, m)
			}
		}
		used, err := q.appendRecords(ctx, p, rows, o)
		if err != nil {
			return err
		}
		if used < len(rows) { // the page is full
			last := after
			if used > 0 {
				last = cursor{kind: 'h', member: places[used-1]}
			}
			p.Next = heldCursor(last).String()
			return nil
		}
		if len(members) < o.Limit {
			p.Next = ""
			return nil
		}
		after = cursor{kind: 'h', member: members[len(members)-1]}
		low = "(" + after.member
		if looked += len(members); looked >= scanMost || p.isFull(o) {
			p.Next = after.String()
			return nil
		}
	}
}

// heldCursor returns c as a place among the held tasks; the zero cursor becomes the place before all of them.
func heldCursor(c cursor) cursor {
	c.kind = 'h'
	return c
}
