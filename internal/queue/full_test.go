package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// full is a world in which a leads, schedules s (which pushed nothing) and pushed (which pushed a slot ahead) are there,
// one task runs at a, one at the lost generation of b, one is dead and one is due, and Redis has just become full.
type full struct {
	*world
	a       *inst
	lost    int64 // b's generation
	running *task.Task
	s, p    queue.Last
	ahead   queue.Ahead
	place   queue.Place // of it
}

func newFull(t *testing.T, srv *testredis.Server, ns string) *full {
	t.Helper()
	w := worldIn(t, srv.Client(), ns)
	w.must(w.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	b := w.join("b", consume("all"))
	w.add(job("held by b"), job("runs", task.Key("k", 1)), job("dies"))
	b.claim(1, lanesOf("job"))
	f := &full{world: w, a: w.join("a"), lost: b.gen}
	got := f.a.claim(2, lanesOf("job"))
	f.running = got[0]
	f.a.cycle(0, lanesOf("job"), queue.Settlement{ID: got[1].ID, Fence: got[1].Fence, Outcome: queue.Died, Record: queue.Rewrite(got[1])})
	b.lose(f.a)
	w.add(job("due"))
	f.s, f.p = w.schedule("s"), w.schedule("pushed")
	slot := w.now().Add(time.Hour).Truncate(time.Second)
	f.a.advance(step("pushed", f.p, slot))
	f.p = w.last("pushed")
	f.ahead = queue.Ahead{Slot: slot, Count: 1}
	f.place = queue.Place{Lane: lane("job"), ID: task.SlotID("pushed", slot)}
	w.must(w.rdb.HSet(t.Context(), f.keys.Active, "k:of nobody", "9").Err())
	w.must(w.rdb.HSet(t.Context(), f.keys.Meta, "lost:1:due:"+lane("job").String(), "1").Err())
	w.must(w.rdb.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	w.must(w.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	return f
}

// content is all that the namespace holds.
func (f *full) content() string {
	f.Helper()
	names, err := f.rdb.Keys(f.Context(), f.part.Prefix()+"*").Result()
	f.must(err)
	slices.Sort(names)
	text := ""
	for _, key := range names {
		dump, err := f.rdb.Dump(f.Context(), key).Result()
		f.must(err)
		text += fmt.Sprintf("%q %q\n", key, dump)
	}
	return text
}

func (f *full) changes(changes ...queue.Change) error {
	_, moved, err := f.q.Change(f.Context(), 0, changes)
	if len(moved) > 0 {
		return errors.New("the schedule had moved")
	}
	return err
}

// bulk has a bulk action begun, claimed and done.
func (f *full) bulk() error {
	f.begin("e", "ann")
	b, _ := f.bulkClaim("e", 1)
	b.State, b.Changed = queue.BulkDone, 7
	held, err := f.q.NoteBulk(f.Context(), &b)
	if err == nil && (!held || b.State != queue.BulkDone || b.Changed != 7) {
		return fmt.Errorf("held: %t: %+v", held, b)
	}
	return err
}

// At maxmemory, calls that keep the beat or make room pass. Calls that bring something new are refused, whole.
func TestFullRedis_whatPassesAndWhatIsRefused(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	ctx := context.Background()
	define := queue.Change{Name: "s", Definition: `{"v":2}`, Event: "schedule changed"}
	tests := []struct {
		name, script string
		refused      bool
		call         func(f *full) error
	}{
		{"a heartbeat", "heartbeat", false, func(f *full) error { f.a.beat(); return nil }},
		{"joining", "register", false, func(f *full) error {
			_, _, _, err := f.reg.Register(ctx, instance.Config{ID: "c", Lease: time.Minute}, instance.Past{})
			return err
		}},
		{"resigning", "state", false, func(f *full) error { _, err := f.reg.Resign(ctx, "a", f.a.gen); return err }},
		{"leaving", "deregister", false, func(f *full) error { _, err := f.reg.Deregister(ctx, "a", f.a.gen); return err }},
		{"opening the gate", "open", false, func(f *full) error {
			f.must(f.rdb.HDel(ctx, f.keys.Leader, "open").Err())
			_, err := f.reg.Open(ctx, f.a.term())
			return err
		}},
		{"asking to declare", "declare", false, func(f *full) error { _, _, err := f.reg.Declare(ctx, f.a.term()); return err }},
		{"promoting a release", "promote", false, func(f *full) error {
			f.join("b", release("newer"))
			_, err := f.reg.Promote(ctx, "newer")
			return err
		}},
		{"carrying over the order of a release", "raise", false, func(f *full) error {
			f.join("b", release("newer"))
			order, err := f.reg.Raise(ctx, "newer", 1)
			if err == nil {
				_, err = f.reg.Raise(ctx, "newer", order+1)
			}
			return err
		}},
		{"pausing", "pause", false, func(f *full) error {
			_, err := f.reg.Pause(ctx, time.Second, "")
			_, again := f.reg.Pause(ctx, 0, "")
			return errors.Join(err, again)
		}},
		{"asking to resign and to drain", "ask", false, func(f *full) error {
			f.join("b", release("newer"))
			_, err := f.reg.AskToResign(ctx, "b", "ann")
			_, again := f.reg.AskToDrain(ctx, "b", "ann")
			return errors.Join(err, again)
		}},
		{"standing down", "standdown", false, func(f *full) error {
			b := f.join("b", release("newer"))
			f.join("a2", release("newest"))
			_, err := f.reg.Resign(ctx, "a", f.a.gen)
			f.must(err)
			lead := f.rdb.HGetAll(ctx, f.keys.Leader).Val()
			epoch, _ := strconv.ParseInt(lead["epoch"], 10, 64)
			gen, _ := strconv.ParseInt(lead["gen"], 10, 64)
			stood, v, err := f.reg.StandDown(ctx, queue.Term{Instance: "a2", Gen: gen, Epoch: epoch}, "stuck", true, true)
			if err == nil && (!stood || v.LeaderGen != b.gen) {
				return errors.New("it leads on")
			}
			return err
		}},
		{"looking at a leader, which is suspected", "look", false, func(f *full) error {
			b := f.join("b", release("newer"))
			f.a.beat()
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
			f.must(f.rdb.HSet(ctx, f.keys.Details, "b", `{"lease_ms":500}`).Err())
			f.must(f.rdb.HSet(ctx, f.keys.Leader, "monitor", fmt.Sprintf("a %d %d", f.a.gen, time.Now().Add(time.Second).UnixMilli())).Err())
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "1").Err())
			l, err := f.reg.Look(ctx, "a", f.a.gen, b.gen, 500*time.Millisecond, instance.Seen{}, time.Minute)
			f.must(err)
			time.Sleep(260 * time.Millisecond) // half of the lease
			l, err = f.reg.Look(ctx, "a", f.a.gen, b.gen, 500*time.Millisecond, l.Seen, time.Minute)
			if err == nil && !l.Suspected {
				err = fmt.Errorf("not suspected: %+v", l)
			}
			return err
		}},
		{"claiming and settling", "cycle", false, func(f *full) error {
			_, err := f.q.Cycle(ctx, f.a.request(9, lanesOf("job"), finished(f.running)))
			return err
		}},
		{"taking back from the lost", "recover", false, func(f *full) error {
			moved, _, err := f.q.Recover(ctx, f.lost, f.recoveries(f.lost))
			if err == nil && moved != 1 {
				return fmt.Errorf("%d taken back", moved)
			}
			return err
		}},
		{"cancelling what is due", "cancel", false, func(f *full) error { _, err := f.q.Cancel(ctx, "due", "", false); return err }},
		{"retrying the dead", "revive", false, func(f *full) error { _, err := f.q.Revive(ctx, []*task.Task{job("dies")}); return err }},
		{"tidying up", "tidy", false, func(f *full) error { _, err := f.q.Tidy(ctx, 5*time.Second); return err }},
		{"counting anew what runs", "recount", false, func(f *full) error {
			wrong, err := f.q.Recount(ctx)
			if err == nil && wrong != 1 {
				return fmt.Errorf("%d counts were wrong", wrong)
			}
			return err
		}},
		{"finding again what was lost", "restock", true, func(f *full) error {
			f.must(f.rdb.Rename(ctx, f.keys.Due(lane("job")), f.keys.Due(lane("nobody's"))).Err())
			_, err := f.q.FindLost(ctx)
			f.must(f.rdb.Rename(ctx, f.keys.Due(lane("nobody's")), f.keys.Due(lane("job"))).Err())
			return err
		}},
		{"setting aside what is of another type", "mend", false, func(f *full) error {
			f.must(f.rdb.Rename(ctx, f.keys.Leader, f.keys.Dead).Err())
			aside, err := f.q.Mend(ctx, nil)
			if err == nil && !slices.Contains(aside, f.keys.Dead) {
				return fmt.Errorf("set aside: %v", aside)
			}
			return err
		}},
		{"trimming what is archived", "trim", false, func(f *full) error {
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
			for range 300 {
				f.must(f.rdb.XAdd(ctx, &redis.XAddArgs{Stream: f.keys.History, Values: []any{"runs", "s@1 done 1 2"}}).Err())
			}
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "1").Err())
			q, err := queue.New(f.rdb, f.part, queue.Caps{History: 1})
			f.must(err)
			t, err := q.HistoryTail(ctx, "", 0)
			f.must(err)
			n, err := q.TrimHistory(ctx, t.Stream)
			if err == nil && n == 0 {
				return errors.New("nothing was trimmed")
			}
			return err
		}},
		{"reading schedules", "schedules", false, func(f *full) error { _, err := f.q.SchedulesNamed(ctx, []string{"s"}); return err }},
		{"reading records", "records", false, func(f *full) error { _, err := f.q.Records(ctx, []string{"x"}); return err }},
		{"looking for tasks", "exist", false, func(f *full) error { _, err := f.q.Exist(ctx, []string{"x"}); return err }},
		{"dropping a missed slot", "advance", false, func(f *full) error {
			s := step("pushed", f.p)
			s.Becomes, s.Drop = s.Expect, []queue.Drop{{Place: f.place, Due: f.ahead.Slot}}
			_, dropped, _, err := f.q.Advance(ctx, f.a.term(), []queue.Step{s})
			if err == nil && dropped != 1 {
				return fmt.Errorf("%d dropped", dropped)
			}
			return err
		}},
		{"pausing", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "s", Expect: f.s.String(), Pause: yes(true), Event: "schedule paused", Note: "s@1..2 paused 1"})
		}},
		{"pausing with slots ahead", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "pushed", Expect: f.p.String(), Pause: yes(true), Lane: f.place.Lane, Ahead: []queue.Ahead{f.ahead}})
		}},
		{"resuming", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "s", Expect: f.s.String(), Pause: yes(false), FromNow: true})
		}},
		{"deleting", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "s", Expect: f.s.String(), Delete: true}, queue.Change{Name: "pushed", Expect: f.p.String(), Delete: true, Lane: f.place.Lane, Ahead: []queue.Ahead{f.ahead}})
		}},
		{"retiring", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "s", Expect: f.s.String(), Retire: true, By: "v2", Note: "s@1..2 retired 1"}, queue.Change{Name: "pushed", Expect: f.p.String(), Retire: true, By: "v2", Lane: f.place.Lane, Ahead: []queue.Ahead{f.ahead}})
		}},
		{"retiring for a release without a name", "change", false, func(f *full) error {
			return f.changes(queue.Change{Name: "s", Expect: f.s.String(), Retire: true})
		}},
		{"claiming the answer of a request", "answer_claim", false, func(f *full) error {
			_, err := f.q.ClaimAnswer(ctx, "id", "request", time.Minute)
			return err
		}},
		{"keeping the answer of a request", "answer_settle", false, func(f *full) error {
			c, err := f.q.ClaimAnswer(ctx, "id", "request", time.Minute)
			return errors.Join(err, f.q.SettleAnswer(ctx, c, []byte("200")))
		}},
		{"doing a bulk action", "bulk_note", false, func(f *full) error { return f.bulk() }},
		{"stopping a bulk action, and letting it go on", "bulk_ask", false, func(f *full) error {
			f.begin("e", "ann")
			_, stopped := f.q.StopBulk(ctx, "e")
			_, resumed := f.q.ResumeBulk(ctx, "e", "")
			return errors.Join(stopped, resumed)
		}},
		{"noting what was told", "notices", false, func(f *full) error {
			return f.q.ChangeNotices(ctx, f.a.term(), queue.NoticeChange{Name: "w", Set: map[string]string{"w": "1"}})
		}},
		{"splitting a namespace", "split", true, func(f *full) error {
			_, err := queue.Split(ctx, f.rdb, f.part.Namespace+"split", 3, "job")
			return err
		}},
		{"splitting again what is split", "split", false, func(f *full) error {
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
			_, err := queue.Split(ctx, f.rdb, f.part.Namespace+"split", 3, "job")
			f.must(err)
			f.must(f.rdb.ConfigSet(ctx, "maxmemory", "1").Err())
			_, err = queue.Split(ctx, f.rdb, f.part.Namespace+"split", 3, "job")
			return err
		}},
		{"retiring one and making another", "change", true, func(f *full) error {
			return f.changes(queue.Change{Name: "pushed", Expect: f.p.String(), Retire: true, By: "v2", Lane: f.place.Lane, Ahead: []queue.Ahead{f.ahead}}, queue.Change{Name: "new", Definition: "{}"})
		}},
		{"enqueueing", "enqueue", true, func(f *full) error {
			_, _, err := f.q.Enqueue(ctx, []*task.Task{job("new", task.Unique("u", time.Hour))}, true)
			return err
		}},
		{"enqueueing again", "enqueue", true, func(f *full) error {
			_, _, err := f.q.EnqueueAgain(ctx, []*task.Task{job("new", task.Unique("u", time.Hour))})
			return err
		}},
		{"moving", "move", true, func(f *full) error {
			x := job("new", task.Unique("u", time.Hour))
			_, _, err := f.q.Move(ctx, []*task.Task{x}, queue.Moving{Began: f.now(), Marks: map[*task.Task]string{x: "m"}})
			return err
		}},
		{"letting marks go", "moved", false, func(f *full) error { return f.q.Moved(ctx, []string{"m"}) }},
		{"pushing a slot", "advance", true, func(f *full) error {
			_, _, _, err := f.q.Advance(ctx, f.a.term(), []queue.Step{step("s", f.s, f.now().Add(time.Second))})
			return err
		}},
		{"making a schedule", "change", true, func(f *full) error {
			return f.changes(queue.Change{Name: "new", Definition: "{}", Anchor: queue.Anchor{In: true}, Event: "schedule made"})
		}},
		{"changing a definition", "change", true, func(f *full) error {
			c := define
			c.Expect = f.s.String()
			return f.changes(c)
		}},
		{"changing one with slots ahead", "change", true, func(f *full) error {
			c := define
			c.Name, c.Expect, c.Lane, c.Ahead = "pushed", f.p.String(), f.place.Lane, []queue.Ahead{f.ahead}
			return f.changes(c)
		}},
		{"deleting one and making another", "change", true, func(f *full) error {
			return f.changes(queue.Change{Name: "pushed", Expect: f.p.String(), Delete: true, Lane: f.place.Lane, Ahead: []queue.Ahead{f.ahead}}, queue.Change{Name: "new", Definition: "{}"})
		}},
	}
	tried := map[string]bool{}
	for i, tt := range tests {
		tried[tt.script] = true
		t.Run(tt.name, func(t *testing.T) {
			f := newFull(t, srv, fmt.Sprint("full", i))
			before := f.content()
			err := tt.call(f)
			switch {
			case !tt.refused:
				f.must(err)
			case !errors.Is(err, task.ErrFull):
				t.Errorf("error %v, want ErrFull", err)
			case f.content() != before:
				t.Errorf("refused, and yet something was written: was\n%s\nis\n%s", before, f.content())
			}
		})
	}
	for _, s := range store.Scripts() {
		if !tried[s.Name] {
			t.Errorf("nobody tried %s at maxmemory", s.Name)
		}
	}
}
