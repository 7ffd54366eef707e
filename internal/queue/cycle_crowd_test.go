package queue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// slots are tasks of a schedule, due at each millisecond after 1970 in a span.
func slots(name string, in queue.Lane, from, to int64) (list []*task.Task) {
	for ms := from; ms <= to; ms++ {
		at := time.UnixMilli(ms)
		list = append(list, task.New(in.Type, nil, task.ID(task.SlotID(name, at)), task.At(at), task.Queue(in.Queue), task.WithPriority(in.Priority)))
	}
	return list
}

// of counts claimed tasks by what their IDs begin with, up to the "@".
func of(claimed []*task.Task) map[string]int {
	n := map[string]int{}
	for _, t := range claimed {
		name, _, _ := strings.Cut(t.ID, "@")
		n[name]++
	}
	return n
}

// While others wait, a schedule gets half of the workers; if no others do, it gets all.
func TestCycle_aScheduleLeavesHalfOfTheWorkersToOthers(t *testing.T) {
	t.Parallel()
	job, other := lane("job"), lane("other")
	low := queue.Lane{Queue: task.DefaultQueue, Priority: task.Low, Type: "job"}
	slow := func(n int) []queue.Taken { return []queue.Taken{{Schedule: "slow", Workers: n}} }
	tests := []struct {
		name    string
		tasks   [][]*task.Task
		workers int
		taken   []queue.Taken
		want    int
		claimed map[string]int
	}{
		{"others behind it", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", job, 11, 20)}, 4, nil, 4, map[string]int{"slow": 2, "quick": 2}},
		{"others among the first", [][]*task.Task{slots("slow", job, 1, 3), slots("quick", job, 4, 4), slots("slow", job, 5, 9), slots("fast", job, 10, 19)}, 4, nil, 4,
			map[string]int{"slow": 2, "quick": 1, "fast": 1}},
		{"it has all workers but one", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", job, 11, 11)}, 4, slow(3), 1, map[string]int{"quick": 1}},
		{"it has a part of its half", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", job, 11, 20)}, 8, slow(3), 5, map[string]int{"slow": 1, "quick": 4}},
		{"two of them", [][]*task.Task{slots("slow", job, 1, 10), slots("slower", job, 11, 20), slots("quick", job, 21, 21)}, 4,
			[]queue.Taken{{Schedule: "slow", Workers: 2}, {Schedule: "slower", Workers: 2}}, 1, map[string]int{"quick": 1}},
		{"plain tasks", [][]*task.Task{slots("slow", job, 1, 10), {task.New("job", nil, task.ID("plain"), task.At(time.UnixMilli(11)))}}, 4, slow(2), 1, map[string]int{"plain": 1}},
		{"others that fell due last", [][]*task.Task{slots("slow", job, 1, 300), slots("quick", job, 301, 301), slots("slow", job, 302, 380)}, 4, slow(3), 1, map[string]int{"quick": 1}},
		{"others in the middle of very many", [][]*task.Task{slots("slow", job, 1, 150), slots("quick", job, 151, 151), slots("slow", job, 152, 300)}, 4, slow(3), 1,
			map[string]int{"slow": 1}},
		{"others in another lane", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", other, 11, 11)}, 4, slow(3), 1, map[string]int{"quick": 1}},
		{"others in another lane, and none behind it", [][]*task.Task{slots("slow", job, 1, 1), slots("quick", other, 11, 11)}, 4, slow(3), 1, map[string]int{"quick": 1}},
		{"its part goes to another lane", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", other, 11, 20)}, 4, slow(1), 3, map[string]int{"slow": 1, "quick": 2}},
		{"it is in two lanes", [][]*task.Task{slots("slow", job, 1, 10), slots("slow", other, 11, 20), slots("quick", other, 21, 30)}, 4, nil, 4, map[string]int{"slow": 2, "quick": 2}},
		{"a lower priority", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", low, 11, 20)}, 4, slow(2), 2, map[string]int{"slow": 2}},
		{"no others", [][]*task.Task{slots("slow", job, 1, 10)}, 4, nil, 4, map[string]int{"slow": 4}},
		{"no others, and it has its half", [][]*task.Task{slots("slow", job, 1, 10)}, 4, slow(2), 2, map[string]int{"slow": 2}},
		{"no others are due", [][]*task.Task{slots("slow", job, 1, 10), {task.New("job", nil, task.ID("later"), task.In(time.Hour))}}, 4, slow(2), 2, map[string]int{"slow": 2}},
		{"fewer others than workers", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", job, 11, 11)}, 4, nil, 4, map[string]int{"slow": 3, "quick": 1}},
		{"fewer others in another lane", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", other, 11, 11)}, 4, slow(2), 2, map[string]int{"slow": 1, "quick": 1}},
		{"all fit", [][]*task.Task{slots("slow", job, 1, 3), slots("quick", job, 4, 4)}, 4, nil, 4, map[string]int{"slow": 3, "quick": 1}},
		{"one worker", [][]*task.Task{slots("slow", job, 1, 2), slots("quick", job, 3, 3)}, 1, nil, 1, map[string]int{"slow": 1}},
		{"two workers", [][]*task.Task{slots("slow", job, 1, 2), slots("quick", job, 3, 3)}, 2, slow(1), 1, map[string]int{"quick": 1}},
		{"two share all workers", [][]*task.Task{slots("slow", job, 1, 20), slots("quick", job, 21, 40)}, 16, nil, 16, map[string]int{"slow": 8, "quick": 8}},
		{"two share very many workers", [][]*task.Task{slots("slow", job, 1, 100), slots("quick", job, 101, 200)}, 64, nil, 64, map[string]int{"slow": 32, "quick": 32}},
		{"any number of workers", [][]*task.Task{slots("slow", job, 1, 10), slots("quick", job, 11, 20)}, 0, nil, 4, map[string]int{"slow": 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				a := w.join("a")
				left := map[string]bool{}
				for _, list := range tt.tasks {
					w.add(list...)
					for _, x := range list {
						left[x.ID] = true
					}
				}
				lanes := append(lanesOf("job", "other"), queue.LaneClaim{Lane: low, Group: 1})
				q := a.request(tt.want, lanes)
				q.Workers, q.Taken = tt.workers, tt.taken
				r, err := w.q.Cycle(t.Context(), q)
				w.must(err)
				got := of(r.Claimed)
				for name, n := range tt.claimed {
					same(t, "claimed of "+name, got[name], n)
				}
				same(t, "claimed", len(r.Claimed), min(tt.want, len(left)))

				// Each claimed task left its lane, and no other did; the reply names the first that is left.
				for _, x := range r.Claimed {
					same(t, x.ID+" was due", left[x.ID], true)
					delete(left, x.ID)
				}
				first := time.Time{}
				for _, l := range lanes {
					for _, z := range rdb.ZRangeWithScores(t.Context(), w.keys.Due(l.Lane), 0, -1).Val() {
						id := z.Member.(string)
						same(t, id+" is left", left[id], true)
						delete(left, id)
						if due := time.UnixMilli(int64(z.Score)).UTC(); first.IsZero() || due.Before(first) {
							first = due
						}
					}
				}
				same(t, "lost", len(left), 0)
				same(t, "next due", r.NextDue, first)
				same(t, "due work is left", r.LeftDue, !first.IsZero() && !first.After(r.Now))
				for _, x := range r.Claimed {
					if _, slot, ok := task.ParseSlotID(x.ID); ok {
						same(t, "due time of "+x.ID, x.Due, slot)
					}
				}
			})
		})
	}
}

// Slots that are due at once, like those of a backfill, count too, once their schedule has many workers.
func TestCycle_aCrowdThatIsDueAtOnceLeavesWorkers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		for _, x := range slots("slow", lane("job"), 1, 100) {
			x.Due = time.UnixMilli(1)
			w.add(x)
		}
		w.add(slots("quick", lane("job"), 200, 240)...)
		q := a.request(40, lanesOf("job"))
		q.Workers, q.Taken = 100, []queue.Taken{{Schedule: "slow", Workers: 40}}
		r, err := w.q.Cycle(t.Context(), q)
		w.must(err)
		got := of(r.Claimed)
		same(t, "slow", got["slow"], 10)
		same(t, "quick", got["quick"], 30)
	})
}

// A slot of a crowded schedule that its overlap policy drops is dropped, though it was passed over at first.
func TestCycle_aCrowdKeepsItsOverlapPolicy(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		for ms := int64(1); ms <= 5; ms++ {
			w.add(keyed(task.SlotID("s", time.UnixMilli(ms)), "s", 1, task.Skip, ms))
		}
		w.add(slots("quick", lane("job"), 6, 6)...)
		q := a.request(4, lanesOf("job"))
		q.Workers = 4
		r, err := w.q.Cycle(t.Context(), q)
		w.must(err)
		equal(t, "claimed", sortedIDs(r.Claimed), []string{"quick@6", "s@1"})
		same(t, "skipped", r.Skipped, 4)
		same(t, "left", w.count(w.keys.Due(lane("job"))), 0)
	})
}

// A lane whose tasks are large gives what fits, also beyond a crowd.
func TestCycle_boundsTheBytesOfAClaimBeyondACrowd(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(slots("slow", lane("job"), 1, 20)...)
		big := slots("big", lane("job"), 21, 26)
		for _, x := range big {
			x.Payload = make([]byte, 1<<20)
		}
		w.add(big...)
		q := a.request(8, lanesOf("job"))
		q.Workers, q.Taken = 16, []queue.Taken{{Schedule: "slow", Workers: 8}}
		r, err := w.q.Cycle(t.Context(), q)
		w.must(err)
		equal(t, "claimed", ids(r.Claimed), []string{"big@21", "big@22", "big@23"})
		same(t, "due work is left", r.LeftDue, true)
		same(t, "next due", r.NextDue, time.UnixMilli(1).UTC())
		all := slices.Concat(rdb.ZRange(t.Context(), w.keys.Due(lane("job")), 0, -1).Val(), ids(r.Claimed))
		same(t, "tasks in a place", len(all), 26)
	})
}
