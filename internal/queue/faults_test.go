package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A full Redis takes nothing new, and nothing half; but the tasks in it are worked off, and leases are renewed.
func TestFullRedis_isWorkedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Private(t).Client())
	ctx := t.Context()
	a := w.join("a")
	w.add(jobs("j", 10)...)
	w.add(job("k1", task.Key("k", 1)), job("k2", task.Key("k", 1)))
	l := w.schedule("s")
	running := a.claim(2, lanesOf("job"))
	w.must(w.rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	w.must(w.rdb.ConfigSet(ctx, "maxmemory", "1").Err())

	keys := func() string {
		return fmt.Sprint(w.count(w.keys.Tasks), w.count(w.keys.Lanes), w.rdb.DBSize(ctx).Val())
	}
	before := keys()
	_, added, err := w.q.Enqueue(ctx, []*task.Task{job("new", task.Unique("u", time.Hour)), task.New("new", nil, task.ID("new2"))}, true)
	if !errors.Is(err, task.ErrFull) || store.Retryable(err) || added != 0 {
		t.Fatalf("enqueue: added %d, %v, want ErrFull", added, err)
	}
	if _, _, _, err = w.q.Advance(ctx, a.term(), []queue.Step{step("s", l, ms(1000))}); !errors.Is(err, task.ErrFull) {
		t.Fatalf("advance: %v, want ErrFull", err)
	}
	if _, _, err = w.q.Change(ctx, 0, []queue.Change{{Name: "s2", Definition: "{}"}}); !errors.Is(err, task.ErrFull) {
		t.Fatalf("change: %v, want ErrFull", err)
	}
	same(t, "what is there", keys(), before)
	same(t, "slots pushed", w.last("s"), l)

	b := a.beat()
	if left := int64(w.score(w.keys.Instances, "a")) - b.Now.UnixMilli(); left < 50_000 {
		t.Errorf("after a heartbeat the lease has %d ms", left)
	}
	r := a.cycle(20, lanesOf("job"), queue.Settlement{ID: running[0].ID, Fence: running[0].Fence, Outcome: queue.Died, Record: queue.Rewrite(running[0]), Note: "x"},
		queue.Settlement{ID: running[1].ID, Fence: running[1].Fence, Outcome: queue.Moved, Lane: lane("job"), Delay: time.Hour, Record: queue.Rewrite(running[1])})
	same(t, "claimed", len(r.Claimed), 9) // all but the retry and one behind its key
	for len(r.Claimed) > 0 {
		r = a.cycle(20, lanesOf("job"), allFinished(r.Claimed)...)
		same(t, "void", len(r.Void), 0)
	}
	same(t, "left: the retry, the dead", w.count(w.keys.Tasks), 2)
	same(t, "cancel", w.cancel(running[1].ID, false), task.Due)
	w.must(w.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	w.add(job("new", task.Unique("u", time.Hour)))
}

func TestErrors_ofARealRedis(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	admin := srv.Client()
	ctx := t.Context()
	no := func(o *redis.Options) { o.MaxRetries = -1; o.DialTimeout = time.Second; o.DialerRetries = 1 }
	try := func(what string, rdb *redis.Client, want error) {
		t.Helper()
		w := worldIn(t, rdb, "errors")
		_, _, err := w.q.Enqueue(ctx, []*task.Task{job("x")}, false)
		if !errors.Is(err, want) {
			t.Errorf("%s: enqueue: %v, want %v", what, err, want)
		}
		if want == task.ErrBusy || what == "no password" {
			return // reading works; after a long command without a password the connection is closed
		}
		_, err = w.q.Now(ctx)
		reads := []error{err}
		_, err = w.q.Counts(ctx)
		reads = append(reads, err)
		_, _, err = w.q.Lanes(ctx)
		reads = append(reads, err)
		_, err = w.q.Task(ctx, "x")
		reads = append(reads, err)
		for _, s := range []task.State{task.Due, task.Running, task.Dead, task.Done} {
			_, err = w.q.List(ctx, s, queue.ListOptions{})
			reads = append(reads, err)
		}
		_, err = w.q.Events(ctx, time.Time{}, 0)
		reads = append(reads, err, w.q.History(ctx, time.Time{}, nil), w.q.FollowEvents(ctx, "0-0", nil), w.q.FollowEvents(ctx, "", nil))
		_, err = w.q.Schedules(ctx, nil)
		reads = append(reads, err)
		_, err = w.q.SchedulesNamed(ctx, []string{"s"})
		reads = append(reads, err)
		_, err = w.q.Cancel(ctx, "x", "", false)
		reads = append(reads, err)
		_, err = w.q.Tidy(ctx, 5*time.Second)
		reads = append(reads, err)
		_, _, err = w.q.ChangedSince(ctx, 0)
		reads = append(reads, err)
		_, _, err = w.q.Claims(ctx, 1, "")
		reads = append(reads, err)
		for i, err := range reads {
			if !errors.Is(err, want) {
				t.Errorf("%s: read %d: %v, want %v", what, i, err, want)
			}
		}
		_, err = w.q.Revive(ctx, []*task.Task{job("x")})
		_, _, err2 := w.q.Recover(ctx, 1, nil)
		_, _, err3 := w.q.Change(ctx, 0, []queue.Change{{Name: "s"}})
		_, _, _, err4 := w.q.Advance(ctx, queue.Term{}, []queue.Step{{Name: "s"}})
		for i, err := range []error{err, err2, err3, err4} {
			if !errors.Is(err, want) {
				t.Errorf("%s: write %d: %v, want %v", what, i, err, want)
			}
		}
	}

	w := worldIn(t, admin, "errors")
	w.add(job("x"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	refused := l.Addr().String()
	w.must(l.Close())
	try("connection refused", srv.Client(no, func(o *redis.Options) { o.Addr = refused }), task.ErrUnreachable)

	w.must(admin.ACLSetUser(ctx, "reader", "on", ">pw", "~*", "+@connection").Err())
	try("not permitted", srv.Client(no, func(o *redis.Options) { o.Username, o.Password = "reader", "pw" }), task.ErrDenied)
	try("wrong password", srv.Client(no, func(o *redis.Options) { o.Username, o.Password = "reader", "no" }), task.ErrDenied)

	host, port, _ := net.SplitHostPort(refused)
	w.must(admin.ReplicaOf(ctx, host, port).Err())
	try("a replica", srv.Client(no), task.ErrBusy)
	w.must(admin.ReplicaOf(ctx, "no", "one").Err())

	w.must(admin.ConfigSet(ctx, "requirepass", "secret").Err())
	try("no password", srv.Client(no), task.ErrDenied)

	deaf, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never answers
	w.must(err)
	defer deaf.Close()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	slow := srv.Client(no, func(o *redis.Options) {
		o.Addr, o.ReadTimeout, o.ContextTimeoutEnabled = deaf.Addr().String(), 50*time.Millisecond, true
	})
	q, err := queue.New(slow, queue.Partition{Namespace: "errors"}, queue.Caps{})
	w.must(err)
	if _, err := q.Now(short); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("no answer: %v", err)
	}
}

// After a reply was lost, the same instance learns what happened: the next call says STALE if it is the same, and
// Claims says what was claimed.
func TestCycle_lostReply(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	opts := *rdb.Options()
	p := newProxy(t, opts.Addr)
	opts.Addr = p.addr
	opts.MaxRetries = 3 // which must not be used
	through := redis.NewClient(&opts)
	defer through.Close()

	direct := newWorld(t, rdb)
	w := worldIn(t, through, direct.part.Namespace)
	a := w.join("a")
	w.add(jobs("j", 4)...)
	first := a.claim(1, lanesOf("job"))

	p.dropReplies.Store(true)
	r := a.request(2, lanesOf("job"), finished(first[0]))
	if _, err := w.q.Cycle(t.Context(), r); !errors.Is(err, task.ErrUnreachable) || store.NotSent(err) {
		t.Fatalf("with the reply lost: %v, want ErrUnreachable", err)
	}
	p.dropReplies.Store(false)
	if _, err := w.q.Cycle(t.Context(), r); !errors.Is(err, queue.ErrStale) {
		t.Fatalf("the same call again: %v, want ErrStale", err)
	}
	held, seq, err := w.q.Claims(t.Context(), a.gen, a.id)
	w.must(err)
	same(t, "seq", seq, r.Seq)
	same(t, "held", len(held), 2)
	var settle []queue.Settlement
	for _, c := range held {
		if c.Task.Attempt != 1 || c.Task.Instance != "a" || c.Task.Fence <= first[0].Fence || c.Task.Claimed.IsZero() || c.Task.Due.IsZero() {
			t.Errorf("held: %+v", c.Task)
		}
		settle = append(settle, finished(c.Task))
	}
	same(t, "settled before", w.count(w.keys.Tasks), 3)
	same(t, "void", len(a.cycle(0, nil, settle...).Void), 0)
	same(t, "left", w.count(w.keys.Tasks), 1)
}

// Every script keeps to the keys it declares, all of one slot: a cluster refuses anything else.
func TestScripts_onACluster(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--cluster-enabled", "yes")
	node := srv.Client()
	ctx := t.Context()
	w0 := &world{TB: t}
	w0.must(node.ClusterAddSlotsRange(ctx, 0, 16383).Err())
	testredis.Eventually(t, 20*time.Second, func() error {
		info, err := node.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New(info)
		}
		return err
	}, "the cluster is not ready")
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addr()}})
	defer cluster.Close()
	w := worldIn(t, cluster, "shop", queue.Caps{Dead: 1, Done: 1, History: 5, Events: 5})
	a := w.join("a", consume("all"))
	b := w.join("b", consume("all"))
	w.add(jobs("j", 5, task.Unique("u", time.Hour))[:1]...)
	w.add(jobs("k", 6)...)
	w.add(job("k9", task.Key("k", 1)), job("k91", task.Key("k", 1)), task.New("other", nil, task.ID("o"), task.Queue("q")))
	x := keyed("r", "k", 1, task.Replace, 5)
	lanes := lanesOf("job")
	lanes[0].Limit = 100
	got := b.cycle(20, lanes).Claimed
	w.add(x)
	b.cycle(20, lanes)
	var settle []queue.Settlement
	for i, x := range got[:6] {
		settle = append(settle, queue.Settlement{
			ID: x.ID, Fence: x.Fence, Outcome: queue.Outcome(i % 4), Keep: time.Millisecond, Lane: lane("job"), Record: queue.Rewrite(x), Note: "n",
		})
	}
	b.cycle(0, lanes, settle...)
	l := w.schedule("s")
	w.must(w.q.History(ctx, time.Time{}, func(history.Entry) error { return nil }))
	s := step("s", l, ms(1000), w.now().Add(time.Hour))
	s.Note = "n"
	b.advance(s)
	s = step("s", w.last("s"))
	s.Drop = []queue.Drop{drop("s", ms(1000), ms(1000))}
	b.advance(s)
	w.change(queue.Change{Name: "s", Delete: true, Lane: lane("job"), Ahead: []queue.Ahead{{Slot: w.now().Add(time.Hour), Count: 1}}})
	claims := a.cycle(20, lanes).Claimed
	if len(claims) == 0 {
		t.Fatal("nothing to recover")
	}
	w.cancel(claims[0].ID, false)
	a.lose(b)
	_, _, err := w.q.Recover(ctx, a.gen, w.recoveries(a.gen))
	w.must(err)
	dead := w.all(task.Dead, queue.ListOptions{})
	n, err := w.q.Revive(ctx, []*task.Task{dead[0].Task})
	w.must(err)
	same(t, "revived", n, 1)
	for _, st := range []task.State{task.Due, task.Running, task.Done} {
		for _, f := range w.all(st, queue.ListOptions{Limit: 1}) {
			found, err := w.q.Task(ctx, f.Task.ID)
			w.must(err)
			same(t, "state", found.State, st)
			w.cancel(f.Task.ID, true)
		}
	}
	_, err = w.q.Tidy(ctx, 5*time.Second)
	w.must(err)
	c, err := w.q.Counts(ctx)
	w.must(err)
	same(t, "due", c.Due, 0)
	_, err = w.reg.Deregister(ctx, "b", b.gen)
	w.must(err)
	for key := range w.scan() {
		if !strings.HasPrefix(key, w.part.Prefix()) {
			t.Errorf("key %q is not of the partition", key)
		}
	}
}
