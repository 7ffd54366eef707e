package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// stock is a namespace with something in every place. a leads; b was lost and ran something.
type stock struct {
	*world
	n          *world // the same, by a user that may lack a right
	a          *inst
	lost       int64 // b's generation
	gens       map[int64]bool
	lanes      []queue.LaneClaim
	settles    []queue.Settlement
	recoveries []queue.Recovery
	s, p       queue.Last // of schedules s, which has pushed nothing, and p, which pushed two slots
	missed     queue.Drop
	stays      queue.Drop
	ahead      queue.Ahead
	asked      queue.AnswerClaim
	working    queue.Bulk
	claimed    *task.Task // that works on it
}

func newStock(t *testing.T, admin, narrow redis.UniversalClient) *stock {
	t.Helper()
	ns := testredis.Namespace(t)
	w := worldIn(t, admin, ns)
	s := &stock{world: w, n: worldIn(t, narrow, ns), lanes: append(lanesOf("job", "other"), queue.LaneClaim{Lane: lane("limited"), Limit: 2})}
	b := w.join("b", consume("all"))
	w.add(job("lost"), job("lost with key", task.Key("l", 1)), job("lost and dead"))
	b.claim(3, s.lanes)
	s.a, s.lost = w.join("a"), b.gen
	s.gens = map[int64]bool{b.gen: true, s.a.gen: true}

	w.add(keyed("runs", "k", 1, task.Wait, 1), keyed("r@1", "r", 1, task.Replace, 2), keyed("s@1", "s", 1, task.Skip, 3),
		job("finishes"), job("is kept"), job("moves", task.Key("m", 1)), job("dies"), job("was kept"), job("died"))
	limited := func(id string) *task.Task { return task.New("limited", nil, task.ID(id)) }
	w.add(limited("l1"))
	of := map[string]*task.Task{}
	for _, t := range s.a.claim(10, s.lanes) {
		of[t.ID] = t
	}
	settle := func(id string, o queue.Outcome) queue.Settlement {
		t := of[id]
		return queue.Settlement{ID: id, Fence: t.Fence, Outcome: o, Keep: time.Hour, Lane: queue.LaneOf(t), Record: queue.Rewrite(t), Note: "s@5 done 1 0"}
	}
	s.a.cycle(0, s.lanes, settle("was kept", queue.Kept), settle("died", queue.Died))
	w.add(keyed("waits", "k", 1, task.Wait, 11))
	s.a.cycle(10, s.lanes)
	w.add(job("due"), job("later", task.At(w.now().Add(time.Hour))), keyed("waits too", "k", 1, task.Wait, 12), keyed("r@2", "r", 1, task.Replace, 13),
		keyed("s@2", "s", 1, task.Skip, 14), keyed("m2", "m", 1, task.Wait, 15), limited("l2"), limited("l3"), task.New("other", nil, task.ID("o")))
	s.settles = []queue.Settlement{settle("finishes", queue.Finished), settle("runs", queue.Finished), settle("is kept", queue.Kept), settle("moves", queue.Moved), settle("dies", queue.Died)}
	s.s, s.p = w.schedule("s"), w.schedule("p")
	long, slot := time.UnixMilli(1_000), w.now().Add(time.Hour).Truncate(time.Second)
	s.a.advance(step("p", s.p, long, long.Add(time.Second), slot))
	s.p = w.last("p")
	s.missed, s.stays = drop("p", long, long), drop("p", long.Add(time.Second), long.Add(time.Second))
	s.stays.Behind = true
	s.ahead = queue.Ahead{Slot: slot, Count: 1}
	s.must(s.rdb.ZAdd(t.Context(), s.keys.Done, redis.Z{Score: 1, Member: "was kept"}).Err())
	b.lose(s.a)
	s.join("c", release("v0"), func(c *instance.Config) { c.Standby = true })
	s.must(s.rdb.ZAdd(t.Context(), s.keys.Instances, redis.Z{Score: 1, Member: "c"}).Err())
	s.recoveries = w.recoveries(s.lost)
	s.recoveries[slices.IndexFunc(s.recoveries, func(r queue.Recovery) bool { return r.Claim.Task.ID == "lost and dead" })].Dead = true
	s.answers()
	s.bulks()
	s.must(s.q.ChangeNotices(t.Context(), s.a.term(), queue.NoticeChange{Name: "w", Set: map[string]string{"w": "1", "s old": "x"}}))
	w.checkPlaces(s.gens)
	return s
}

// answers puts there the claim of a request, and an answer that is older than answers are kept.
func (s *stock) answers() {
	s.Helper()
	var err error
	s.asked, err = s.q.ClaimAnswer(s.Context(), "asked", "x", time.Minute)
	s.must(err)
	old, err := s.q.ClaimAnswer(s.Context(), "old", "x", time.Minute)
	s.must(err)
	s.must(s.q.SettleAnswer(s.Context(), old, []byte("said long ago")))
	s.must(s.rdb.ZAdd(s.Context(), s.keys.Answered, redis.Z{Score: 1, Member: "old"}).Err())
}

// bulks puts there a bulk action that is worked on, one that waits, one that was stopped, and one that ended long ago.
func (s *stock) bulks() {
	s.Helper()
	for _, id := range []string{"mine", "waits", "stopped", "old"} {
		s.begin(id, id)
	}
	s.working, s.claimed = s.bulkClaim("mine", 1)
	_, err := s.q.StopBulk(s.Context(), "stopped")
	s.must(err)
	s.must(s.rdb.HSet(s.Context(), s.keys.Bulk, "old", "done retry x 1 1 1 0 0 0 0 0\told\t{}\t\t").Err())
}

// calls are all that changes something, by the script.
var calls = []struct {
	name, script string
	call         func(ctx context.Context, s *stock) error
}{
	{"enqueue", "enqueue", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Enqueue(ctx, []*task.Task{job("new", task.Unique("u", time.Hour)), task.New("never seen", nil)}, true)
		return err
	}},
	{"enqueue a plain task", "enqueue", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Enqueue(ctx, []*task.Task{job("new"), task.New("never seen", nil)}, false)
		return err
	}},
	{"enqueue again", "enqueue", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.EnqueueAgain(ctx, []*task.Task{job("died", task.Unique("d", time.Hour)), job("was kept"), job("new")})
		return err
	}},
	{"move", "move", func(ctx context.Context, s *stock) error {
		a, b := job("new", task.Unique("u", time.Hour)), task.New("never seen", nil, task.ID("new too"))
		_, _, err := s.n.q.Move(ctx, []*task.Task{a, b}, queue.Moving{Began: s.now(), Marks: map[*task.Task]string{a: "a", b: "b"}})
		return err
	}},
	{"settle and claim", "cycle", func(ctx context.Context, s *stock) error {
		r := s.a.request(20, s.lanes, s.settles...)
		_, err := s.n.q.Cycle(ctx, r)
		return err
	}},
	{"claim", "cycle", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.Cycle(ctx, s.a.request(20, s.lanes))
		return err
	}},
	{"claim what waits behind a crowd", "cycle", func(ctx context.Context, s *stock) error {
		r := s.a.request(6, s.lanes)
		r.Workers, r.Taken = 8, []queue.Taken{{Schedule: "r", Workers: 4}} // r@2 is passed over
		_, err := s.n.q.Cycle(ctx, r)
		return err
	}},
	{"settle", "cycle", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.Cycle(ctx, s.a.request(0, s.lanes, s.settles...))
		return err
	}},
	{"push and drop", "advance", func(ctx context.Context, s *stock) error {
		p := step("p", s.p, s.ahead.Slot.Add(time.Second))
		p.Drop, p.Remains = []queue.Drop{s.missed, s.stays}, "1 2 3"
		_, _, _, err := s.n.q.Advance(ctx, s.a.term(), []queue.Step{p, step("s", s.s, s.now().Add(time.Second))})
		return err
	}},
	{"pause", "change", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Change(ctx, 0, []queue.Change{{Name: "p", Expect: s.p.String(), Pause: yes(true), Lane: lane("job"), Ahead: []queue.Ahead{s.ahead}, Event: "x", Note: "p@1..2 paused 1"}})
		return err
	}},
	{"change and delete", "change", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Change(ctx, 0, []queue.Change{
			{Name: "s", Expect: s.s.String(), Definition: "{}", Event: "x"},
			{Name: "p", Expect: s.p.String(), Delete: true, Lane: lane("job"), Ahead: []queue.Ahead{s.ahead}, Event: "x"},
		})
		return err
	}},
	{"retire", "change", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Change(ctx, 0, []queue.Change{{Name: "p", Expect: s.p.String(), Retire: true, By: "v2", Lane: lane("job"), Ahead: []queue.Ahead{s.ahead}, Event: "x"}})
		return err
	}},
	{"cancel what is due", "cancel", func(ctx context.Context, s *stock) error { _, err := s.n.q.Cancel(ctx, "due", "", false); return err }},
	{"cancel what waits", "cancel", func(ctx context.Context, s *stock) error { _, err := s.n.q.Cancel(ctx, "waits", "", false); return err }},
	{"cancel what runs", "cancel", func(ctx context.Context, s *stock) error { _, err := s.n.q.Cancel(ctx, "runs", "", false); return err }},
	{"delete what is dead", "cancel", func(ctx context.Context, s *stock) error { _, err := s.n.q.Cancel(ctx, "died", "", true); return err }},
	{"delete what is kept", "cancel", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.Cancel(ctx, "was kept", "", true)
		return err
	}},
	{"retry the dead", "revive", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.Revive(ctx, []*task.Task{job("died")})
		return err
	}},
	{"take back", "recover", func(ctx context.Context, s *stock) error {
		_, _, err := s.n.q.Recover(ctx, s.lost, s.recoveries)
		return err
	}},
	{"forget a generation", "recover", func(ctx context.Context, s *stock) error { _, _, err := s.n.q.Recover(ctx, s.lost, nil); return err }},
	{"tidy up", "tidy", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.Tidy(ctx, time.Second)
		return err
	}},
	{"join", "register", func(ctx context.Context, s *stock) error {
		_, _, _, err := s.n.reg.Register(ctx, instance.Config{ID: "c", Lease: time.Minute}, instance.Past{})
		return err
	}},
	{"find that one is lost", "heartbeat", func(ctx context.Context, s *stock) error {
		_, err := s.n.reg.Heartbeat(ctx, "a", s.a.gen, time.Minute, time.Time{}, "")
		return err
	}},
	{"leave", "deregister", func(ctx context.Context, s *stock) error { _, err := s.n.reg.Deregister(ctx, "a", s.a.gen); return err }},
	{"resign", "state", func(ctx context.Context, s *stock) error { _, err := s.n.reg.Resign(ctx, "a", s.a.gen); return err }},
	{"ask to drain", "ask", func(ctx context.Context, s *stock) error { _, err := s.n.reg.AskToDrain(ctx, "a", "ann"); return err }},
	{"open", "open", func(ctx context.Context, s *stock) error { _, err := s.n.reg.Open(ctx, s.a.term()); return err }},
	{"declare", "declare", func(ctx context.Context, s *stock) error { _, _, err := s.n.reg.Declare(ctx, s.a.term()); return err }},
	{"claim an answer", "answer_claim", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.ClaimAnswer(ctx, "new", "x", time.Minute)
		return err
	}},
	{"keep an answer", "answer_settle", func(ctx context.Context, s *stock) error {
		return s.n.q.SettleAnswer(ctx, s.asked, []byte("said"))
	}},
	{"note what was told", "notices", func(ctx context.Context, s *stock) error {
		return s.n.q.ChangeNotices(ctx, s.a.term(), queue.NoticeChange{Name: "w", Was: "1", Set: map[string]string{"w": "2", "s new": "x"}, Remove: []string{"s old"}})
	}},
	{"begin a bulk action", "bulk_ask", func(ctx context.Context, s *stock) error {
		_, err := s.n.q.BeginBulk(ctx, queue.Bulk{ID: "new", Action: "retry", Filter: []byte("{}")}, "")
		return err
	}},
	{"stop a bulk action", "bulk_ask", func(ctx context.Context, s *stock) error { _, err := s.n.q.StopBulk(ctx, "mine"); return err }},
	{"resume a bulk action", "bulk_ask", func(ctx context.Context, s *stock) error { _, err := s.n.q.ResumeBulk(ctx, "stopped", ""); return err }},
	{"claim a bulk action", "bulk_note", func(ctx context.Context, s *stock) error { _, _, err := s.n.q.ClaimBulk(ctx, s.claimed); return err }},
	{"end a bulk action", "bulk_note", func(ctx context.Context, s *stock) error {
		b := s.working
		b.Matched, b.Cursor, b.State = 3, "", queue.BulkDone
		_, err := s.n.q.NoteBulk(ctx, &b)
		return err
	}},
	{"give up an answer", "answer_settle", func(ctx context.Context, s *stock) error { return s.n.q.SettleAnswer(ctx, s.asked, nil) }},
}

// contents is all that the namespace holds, in a form that does not depend on how Redis keeps it: but for who watches, which
// each heartbeat mends; the number of the last call; which lanes there are, as one without tasks harms nobody; and what records
// say, as the record of a result may be written before the result is taken: it comes again, with the same record.
func (s *stock) contents() map[string]string {
	ctx, all := context.Background(), map[string]string{}
	for _, key := range s.rdb.Keys(ctx, strings.ReplaceAll(s.part.Prefix(), "{", "\\{")+"*").Val() {
		if key == s.keys.Watch || key == s.keys.Lanes {
			continue
		}
		switch s.rdb.Type(ctx, key).Val() {
		case "hash":
			h := s.rdb.HGetAll(ctx, key).Val()
			if strings.HasPrefix(key, s.part.Prefix()+"running:") {
				delete(h, "")
			}
			if key == s.keys.Meta {
				delete(h, "lanes")
			}
			if key == s.keys.Tasks {
				for id := range h {
					h[id] = ""
				}
			}
			all[key] = fmt.Sprint(h)
		case "zset":
			all[key] = fmt.Sprint(s.rdb.ZRangeWithScores(ctx, key, 0, -1).Val())
		case "stream":
			all[key] = fmt.Sprint(s.rdb.XRange(ctx, key, "-", "+").Val())
		default:
			all[key] = s.rdb.Get(ctx, key).Val()
		}
	}
	return all
}

// nothingDone fails unless each task is in one place, and, if a call was refused, all is as it was before.
func (s *stock) nothingDone(t *testing.T, err error, before map[string]string) {
	t.Helper()
	t.Log(err)
	s.checkPlaces(s.gens)
	if err != nil {
		s.as(t, before)
	}
}

// as fails unless all is as it was before.
func (s *stock) as(t *testing.T, before map[string]string) {
	t.Helper()
	after := s.contents()
	for key := range before {
		if after[key] != before[key] {
			t.Errorf("%s was %s and is %s", key, before[key], after[key])
		}
		delete(after, key)
	}
	for key, is := range after {
		t.Errorf("%s was not there, and is %s", key, is)
	}
}
