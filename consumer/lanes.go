package consumer

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// lanes is the partition's lanes as the consumer last read them. The lanes that it claims from are in groups of one queue
// and priority.
type lanes struct {
	version int64
	queues  []laneQueue
	own     []queue.LaneClaim // those of the dispatcher's own types that it claims from, bulk actions last
	others  []queue.LaneClaim // lanes of other consumers; a call names them so that the script may put a task there
	count   int               // lanes in queues and own
}

// laneQueue is the lanes of one queue, highest priority first.
type laneQueue struct {
	name   string
	weight int
	groups [][]queue.LaneClaim
}

// reads names the lanes that a consumer reads. Two consumers have the same name if they read the same types of the same queues with
// the same limits; then one can watch for the other. The limits count: a consumer that has reached its lower limit of a
// type does not see the tasks that the other could still claim.
func reads(h Handlers, cfg *Config) string {
	types := slices.Clone(h.Types())
	slices.Sort(types)
	sum := fnv.New64a()
	write := func(name string) { _, _ = sum.Write([]byte(name + "\n")) } // names have no line breaks and no bar
	for _, name := range slices.Concat(types, []string{"|"}, slices.Sorted(maps.Keys(cfg.Queues))) {
		write(name)
	}
	for _, typ := range types {
		if n := cfg.Limits[typ]; n > 0 {
			write("|" + typ + "|" + strconv.Itoa(n))
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// load reads the list of lanes from Redis and sorts it into those that the consumer claims from and the others. After an
// error the old list stays.
func (l *lanes) load(ctx context.Context, q *queue.Queue, h Handlers, cfg *Config) error {
	type list struct {
		lanes   []queue.Lane
		version int64
	}
	read, err := store.Within(ctx, func() (list, error) {
		all, version, err := q.Lanes(ctx)
		return list{all, version}, err
	})
	if err != nil {
		return err
	}
	all := read.lanes
	types := map[string]bool{}
	for _, t := range h.Types() {
		types[t] = true
	}
	slices.SortFunc(all, func(a, b queue.Lane) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Type, b.Type))
	})
	*l = lanes{version: read.version}
	for _, lane := range all {
		weight, wanted := cfg.Queues[lane.Queue], len(cfg.Queues) == 0
		if !types[lane.Type] || weight == 0 && !wanted {
			l.others = append(l.others, queue.LaneClaim{Lane: lane, Limit: -1})
			continue
		}
		c := queue.LaneClaim{Lane: lane, Limit: cfg.Limits[lane.Type]}
		if strings.HasPrefix(lane.Type, task.Own) {
			l.addOwn(c)
			continue
		}
		l.add(c, max(weight, 1))
	}
	slices.SortStableFunc(l.own, func(a, b queue.LaneClaim) int { return cmp.Compare(b.Group, a.Group) })
	return nil
}

// addOwn adds a lane of the dispatcher's own types. They share one group whatever their queues and priorities: there are few tasks.
func (l *lanes) addOwn(c queue.LaneClaim) {
	if c.Group = queue.OwnGroup; c.Lane.Type == task.BulkType {
		c.Group = queue.BulkGroup
	}
	l.own = append(l.own, c)
	l.count++
}

// add appends a lane that the consumer claims from. Lanes come sorted by queue and then by priority.
func (l *lanes) add(c queue.LaneClaim, weight int) {
	n := len(l.queues)
	if n == 0 || l.queues[n-1].name != c.Lane.Queue {
		l.queues = append(l.queues, laneQueue{name: c.Lane.Queue, weight: weight})
		n++
	}
	q := &l.queues[n-1]
	if g := len(q.groups); g == 0 || q.groups[g-1][0].Lane.Priority != c.Lane.Priority {
		q.groups = append(q.groups, nil)
	}
	last := &q.groups[len(q.groups)-1]
	*last = append(*last, c)
	l.count++
}

// order appends the lanes in the order in which this call asks them. The order of the queues is by weight if strict;
// otherwise it is drawn anew for each call, and each place goes to a queue with a chance in proportion to its weight.
func (l *lanes) order(into []queue.LaneClaim, strict, withOthers bool) []queue.LaneClaim {
	if len(l.queues) > 1 {
		keys := make(map[string]float64, len(l.queues))
		for _, q := range l.queues {
			keys[q.name] = float64(q.weight)
			if !strict { // Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006
				keys[q.name] = math.Pow(1-rand.Float64(), 1/float64(q.weight))
			}
		}
		slices.SortStableFunc(l.queues, func(a, b laneQueue) int { return cmp.Compare(keys[b.name], keys[a.name]) })
	}
	into = append(into, l.own...)
	group := 0
	for _, q := range l.queues {
		for _, g := range q.groups {
			group++
			for _, c := range g {
				c.Group = group
				into = append(into, c)
			}
		}
	}
	if withOthers {
		into = append(into, l.others...)
	}
	return into
}

// knows reports whether the consumer claims from a lane, so that order lists it even without the others.
func (l *lanes) knows(lane queue.Lane) bool {
	if slices.ContainsFunc(l.own, func(c queue.LaneClaim) bool { return c.Lane == lane }) {
		return true
	}
	for _, q := range l.queues {
		if q.name != lane.Queue {
			continue
		}
		for _, g := range q.groups {
			for _, c := range g {
				if c.Lane == lane {
					return true
				}
			}
		}
	}
	return false
}
