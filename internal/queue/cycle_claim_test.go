package queue_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestCycle_claimsOnlyWhenPermitted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode            instance.Consume
		old, new1, new2 bool // of release v1, and two of v2; new2 leads
	}{
		{instance.ConsumeNewest, false, false, true},
		{instance.ConsumeRelease, false, true, true},
		{instance.ConsumeAll, true, true, true},
	}
	for _, tt := range tests {
		t.Run(string(tt.mode), func(t *testing.T) {
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				old := w.join("old", release("v1"), consume(tt.mode))
				new1 := w.join("new1", release("v2"), consume(tt.mode))
				new2 := w.join("new2", release("v2"), consume(tt.mode))
				w.add(jobs("j", 10)...)
				for _, c := range []struct {
					by   *inst
					want bool
				}{{old, tt.old}, {new1, tt.new1}, {new2, tt.new2}} {
					r := c.by.cycle(1, lanesOf("job"))
					same(t, c.by.id+" may claim", r.MayClaim, c.want)
					same(t, c.by.id+" claimed", len(r.Claimed) == 1, c.want)
					same(t, c.by.id+" is told what is due", r.LeftDue, c.want)
				}
				// An instance that drains takes nothing, in any mode.
				_, err := w.reg.Resign(t.Context(), "new1", new1.gen)
				w.must(err)
				same(t, "draining", new1.cycle(1, lanesOf("job")).MayClaim, false)
			})
		})
	}
}

func TestCycle_claimsOnlyWhenTheGateIsOpen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		c := instance.Config{ID: "a", Lead: instance.LeadNewest, Consume: instance.ConsumeAll, Lease: time.Minute}
		gen, _, _, err := w.reg.Register(t.Context(), c, instance.Past{})
		w.must(err)
		a := &inst{world: w, id: "a", gen: gen}
		w.add(job("x"))
		same(t, "not ready", a.cycle(1, lanesOf("job")).MayClaim, false)
		v, err := w.reg.Ready(t.Context(), "a", gen, instance.DefaultLease)
		w.must(err)
		same(t, "shut", a.cycle(1, lanesOf("job")).MayClaim, false)
		a.epoch = v.Epoch
		_, err = w.reg.Open(t.Context(), a.term())
		w.must(err)
		a.claim(1, lanesOf("job"))
	})
}

func TestCycle_takesLanesInOrder(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		var lanes []queue.LaneClaim
		for i, p := range []task.Priority{task.Low, task.Normal, task.High} {
			w.add(task.New("job", nil, task.ID(p.String()), task.WithPriority(p)))
			lanes = append([]queue.LaneClaim{{Lane: queue.Lane{Queue: "default", Priority: p, Type: "job"}, Group: 3 - i}}, lanes...)
		}
		w.add(task.New("other", nil, task.ID("not ours"), task.WithPriority(task.High)))
		lanes = append([]queue.LaneClaim{{Lane: queue.Lane{Queue: "default", Priority: task.High, Type: "other"}, Group: 1, Limit: -1}}, lanes...)
		for _, want := range []string{"high", "normal", "low"} {
			same(t, "next", a.claim(1, lanes)[0].ID, want)
		}
		r := a.cycle(1, lanes)
		same(t, "claimed of another's lane", len(r.Claimed), 0)
		same(t, "next due of another's lane", r.NextDue, time.Time{})
	})
}

// A flood of one type holds up no other of the same queue and priority.
func TestCycle_sharesBetweenTypes(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("flood", 100)...)
		w.add(task.New("b", nil, task.ID("b0")), task.New("b", nil, task.ID("b1")), task.New("c", nil, task.ID("c0")))
		lanes := lanesOf("job", "b", "c", "unused")
		count := map[string]int{}
		r := a.cycle(12, lanes)
		for _, x := range r.Claimed {
			count[x.Type]++
		}
		same(t, "of b", count["b"], 2)
		same(t, "of c", count["c"], 1)
		same(t, "of the flood: what the others leave", count["job"], 9)
		same(t, "left", r.LeftDue, true)
	})
}

// Wanting fewer than there are types must not lose sight of the types that got nothing.
func TestCycle_seesWhatItLeavesBehind(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(task.New("b", nil, task.ID("b0")), task.New("c", nil, task.ID("c0")), task.New("d", nil, task.ID("d0")))
		lanes := lanesOf("b", "c", "d")
		for left := 2; left >= 0; left-- {
			r := a.cycle(1, lanes)
			same(t, "claimed", len(r.Claimed), 1)
			same(t, "left "+strconv.Itoa(left), r.LeftDue, left > 0)
			same(t, "next is now", !r.NextDue.IsZero() && !r.NextDue.After(r.Now), left > 0)
		}
	})
}

func TestCycle_nextDueIsExact(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		same(t, "nothing waits", a.cycle(10, lanesOf("job")).NextDue, time.Time{})
		at := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(job("x", task.At(at.Add(time.Millisecond))), job("y", task.At(at)), job("now"))
		r := a.cycle(10, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 1)
		same(t, "next due", r.NextDue, at)
		same(t, "with nothing claimed", a.cycle(10, lanesOf("job")).NextDue, at)
	})
}

// The limit of a type holds over all instances, and the tasks that it keeps from running make no instance spin.
func TestCycle_limitsAType(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a, b := w.join("a", consume("all")), w.join("b", consume("all"))
		w.add(jobs("j", 10)...)
		w.add(task.New("free", nil, task.ID("f0")))
		lanes := lanesOf("job", "free")
		lanes[0].Limit = 3
		first := a.cycle(2, lanes[:1]).Claimed
		same(t, "a claimed", len(first), 2)
		r := b.cycle(10, lanes)
		same(t, "b claimed", len(r.Claimed), 2) // one of the limited type, and the free one
		same(t, "nothing to come back for", r.NextDue, time.Time{})
		same(t, "full", len(b.cycle(10, lanes[:1]).Claimed), 0)
		same(t, "counted", rdb.HGet(t.Context(), w.keys.Active, "t:job").Val(), "3")
		r = b.cycle(10, lanes, allFinished(r.Claimed)...)
		same(t, "given back by b", len(r.Claimed), 1)
		a.cycle(0, lanes, queue.Settlement{ID: first[0].ID, Fence: first[0].Fence, Outcome: queue.Moved, Lane: lane("job")})
		same(t, "given back by a", rdb.HGet(t.Context(), w.keys.Active, "t:job").Val(), "2")
	})
}

// Two watch the next due time; the others are told.
func TestCycle_onlyTwoWatch(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var all []*inst
		for i := range 4 {
			all = append(all, w.join(strconv.Itoa(i), consume("all")))
		}
		due := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(job("x", task.At(due)))
		watching := 0
		for _, i := range all {
			if i.cycle(1, lanesOf("job")).Watching {
				watching++
			}
		}
		same(t, "watching", watching, 2)
		same(t, "known to the registry", w.count(w.keys.Watch), 4)
		// A busy one does not watch.
		all[0].cycle(0, lanesOf("job"))
		same(t, "busy", w.score(w.keys.Watch, "0"), -1)
		same(t, "another watches in its place", all[3].cycle(1, lanesOf("job")).Watching, true)

		// Two tasks fall due at once: an instance that takes one, and has no room for the other, tells the next instance.
		sub := rdb.PSubscribe(t.Context(), w.keys.Wake+":*")
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		w.must(err)
		messages := sub.Channel()
		w.add(jobs("j", 2)...)
		first := (<-messages).Channel
		for _, i := range all {
			if w.keys.WakeOf(i.id) == first {
				same(t, "left behind", i.cycle(1, lanesOf("job")).LeftDue, true)
			}
		}
		if second := (<-messages).Channel; second == first {
			t.Errorf("told %s again", first)
		}
	})
}

func TestCycle_reportsRecordsItCannotRead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 5)...)
		bad := []string{"9kfuture", "1kbroken", "", "1k9999999,w4:ab"}
		for i, rec := range bad {
			w.must(rdb.HSet(t.Context(), w.keys.Tasks, "j"+strconv.Itoa(i), rec).Err())
		}
		w.must(rdb.ZAdd(t.Context(), w.keys.Due(lane("job")), redis.Z{Score: 1, Member: "no record"}).Err())
		r := a.cycle(10, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 1)
		same(t, "malformed", len(r.Malformed), len(bad))
		for _, m := range r.Malformed {
			if m.Err == nil || m.Fence == 0 || m.Lane != lane("job") {
				t.Errorf("%+v", m)
			}
		}
		same(t, "all are running", w.count(w.keys.Running(a.gen)), 6)
		held, _, err := w.q.Claims(t.Context(), a.gen, a.id)
		w.must(err)
		unreadable := 0
		for _, c := range held {
			if c.Err != nil && c.Task.Fence != 0 {
				unreadable++
			}
		}
		same(t, "unreadable among the held", unreadable, len(bad))
		r = a.cycle(0, lanesOf("job"), queue.Settlement{
			ID: r.Malformed[0].ID, Fence: r.Malformed[0].Fence, Outcome: queue.Moved, Lane: r.Malformed[0].Lane, Delay: time.Minute,
		})
		same(t, "void", len(r.Void), 0)
	})
}

// Redis keeps the running tasks as a table, and not as a list that each settlement walks through. With a hundred running
// tasks, walking was three quarters of the cost of a task.
func TestCycle_runningIsATable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	a := w.join("a")
	w.add(job("x"))
	a.claim(1, lanesOf("job"))
	same(t, "encoding", w.rdb.ObjectEncoding(t.Context(), w.keys.Running(a.gen)).Val(), "hashtable")
}
