package instance

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// pairOn is two processes of a namespace: the older stands by, and the newer leads over a wire of its own.
type pairOn struct {
	*rig
	wire   *wire
	leads  *node
	gen    int64
	waits  *node
	lookup queue.Keys
}

func newPair(t *testing.T, srv *testredis.Server) *pairOn {
	t.Helper()
	r := rigOf(t, srv.Client(), testredis.Namespace(t))
	p := &pairOn{rig: r, lookup: r.q.Keys()}
	own := rigOf(t, srv.Client(), r.p.Namespace)
	p.waits = own.node(Config{ID: "a", Release: "v1"})
	p.waits.session()
	rdb, wire := wired(t, srv.Addr())
	p.wire = wire
	p.leads = rigOf(t, rdb, r.p.Namespace).node(Config{ID: "b", Release: "v2"})
	s := p.leads.session()
	p.gen = s.Gen
	testredis.Eventually(t, testTimeout, func() bool {
		at := r.rdb.HMGet(context.Background(), p.lookup.Leader, "id", "monitor").Val()
		post, _ := at[1].(string)
		return at[0] == "b" && strings.HasPrefix(post, "a ") && strings.Contains(p.suspect("b"), " 1 0 0 0")
	}, "b leads, and a is the monitor")
	time.Sleep(lookTrusts) // by then a has listened for long enough
	return p
}

func (p *pairOn) suspect(id string) string {
	return p.rdb.HGet(context.Background(), p.lookup.Suspects, id).Val()
}

// owes lets the leader watch for a task that falls due in d.
func (p *pairOn) owes(d time.Duration) {
	p.Helper()
	now, err := p.q.Now(context.Background())
	must(p, err)
	must(p, p.rdb.ZAdd(context.Background(), p.lookup.Watch, z("b\x1f", now.Add(d))).Err())
}

func (p *pairOn) leader() string {
	id, _, _ := p.lead()
	return id
}

// Only one process of the pair dies, and its lease is five seconds.
func TestMonitor_replacesADeadLeaderAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t, testredis.Private(t))
	p.owes(0)
	p.wire.cut()
	took := p.wire.since(time.Now(), func() bool { return p.leader() == "a" })
	t.Logf("another leads after %v", took)
	if took > DefaultLease/5 {
		t.Errorf("it took %v", took)
	}
	if !slices.Contains(p.events(), "suspected b") {
		t.Errorf("events %q", p.events())
	}
	if ends := p.rdb.ZScore(context.Background(), p.lookup.Instances, "b").Val(); ends == 0 {
		t.Error("it lost its lease with the lead")
	}
}

// The message that a task is due shows that the leader is gone.
func TestMonitor_looksWhenAMessageFoundNoListener(t *testing.T) {
	t.Parallel()
	p := newPair(t, testredis.Private(t))
	p.owes(time.Hour)
	p.wire.cut()
	testredis.Eventually(t, testTimeout, func() bool {
		return p.rdb.PubSubNumSub(context.Background(), p.lookup.WakeOf("b")).Val()[p.lookup.WakeOf("b")] == 0
	}, "nobody listens")
	p.enqueue("now")
	if took := p.wire.since(time.Now(), func() bool { return p.leader() == "a" }); took > DefaultLease/5 {
		t.Errorf("it took %v", took)
	}
}

func TestMonitor_replacesAFrozenLeaderSoon(t *testing.T) {
	t.Parallel()
	p := newPair(t, testredis.Private(t))
	p.owes(0)
	p.wire.freeze()
	took := p.wire.since(time.Now(), func() bool { return p.leader() == "a" })
	t.Logf("another leads after %v", took)
	if took > DefaultLease/2 {
		t.Errorf("it took %v", took)
	}
	p.wire.thaw()
	p.wire.since(time.Now(), func() bool { return p.leader() == "b" })
	if !slices.Contains(p.events(), "suspected wrongly b") || !strings.HasPrefix(p.suspect("b"), strconv.FormatInt(p.gen, 10)+" ") {
		t.Errorf("back as %q; events %q", p.suspect("b"), p.events())
	}
}

// A Redis that closed all connections makes nobody suspect.
func TestMonitor_suspectsNobodyWhenRedisClosesConnections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, closes := range map[string]func(srv *testredis.Server, rdb redis.UniversalClient){
		"of messages": func(_ *testredis.Server, rdb redis.UniversalClient) { rdb.Do(ctx, "client", "kill", "type", "pubsub") },
		"all":         func(_ *testredis.Server, rdb redis.UniversalClient) { rdb.Do(ctx, "client", "kill", "type", "normal") },
		"by a restart": func(srv *testredis.Server, rdb redis.UniversalClient) {
			rdb.Save(ctx)
			srv.Stop()
			srv.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A leader that gets no processor is silent like one that is frozen, so a suspicion counts where this process got its own, and
			// if it comes again: Redis may answer one thread of a process while another stands still.
			suspected := 0
			for range 10 {
				srv := testredis.Private(t)
				p := newPair(t, srv)
				heldUp := testredis.Witness(t, srv.Client())
				for range 5 {
					p.owes(0) // so that the monitor looks
					closes(srv, p.rdb)
					time.Sleep(400 * time.Millisecond)
				}
				if !slices.ContainsFunc(p.events(), func(e string) bool { return strings.HasPrefix(e, "suspected") }) {
					return
				}
				took := heldUp()
				if t.Logf("events %q; Redis did not answer for %v", p.events(), took); took < lookOwing-200*time.Millisecond {
					if suspected++; suspected == 2 {
						t.Fatal("somebody was suspected, and again")
					}
				}
			}
			t.Skip("this machine is too busy to judge")
		})
	}
}

// Without the right to ask who listens the lease rules, and each instance says so once.
func TestMonitor_withoutTheRight(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	r := newRig(t, admin)
	user := testredis.User(t, admin, append(strings.Fields(queue.ACL(queue.AsInstance, r.p, false)), "-pubsub"))
	var log sink
	n := rigOf(t, user, r.p.Namespace).node(Config{ID: "a", Lease: time.Second, Log: zerolog.New(&log)})
	m := member{"a", n.session().Gen}
	must(t, func() error { time.Sleep(1500 * time.Millisecond); return nil }())
	b, err := rigOf(t, user, r.p.Namespace).reg.Heartbeat(context.Background(), m.id, m.gen, time.Second, time.Time{}, "")
	must(t, err)
	if b.Listens != -1 || b.Monitor {
		t.Errorf("%+v", b)
	}
	if n := strings.Count(log.String(), "NUMSUB"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// sink is a log that several goroutines write.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// An idle namespace pays nothing for its monitor.
func TestMonitor_costsNothingWhileNothingIsDue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		old, line := r.other(mini)
		a := old.node(Config{ID: "a", Release: "v1"})
		a.session()
		b := r.node(Config{ID: "b", Release: "v2"})
		m := member{"b", b.session().Gen}
		time.Sleep(10 * time.Second)
		r.open(m)
		r.wantClaims(m, 0) // it watches for the next task
		time.Sleep(time.Second)
		before := line.count()
		time.Sleep(time.Minute)
		if n := line.count() - before; n > 66 {
			t.Errorf("%d calls in a minute, with a heartbeat a second", n)
		}
		must(t, a.leave())
		must(t, b.leave())
	})
}

// A short lease, or many messages, make heartbeats come more often than looks.
func TestMonitor_looksHoweverOftenHeartbeatsCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := monitoring{timer: time.NewTimer(0)}
		w.rest()
		for began := time.Now(); ; {
			w.posted(lookBusy)
			select {
			case <-w.timer.C:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if time.Since(began) > 2*lookBusy {
				t.Fatal("heartbeats put the look off")
			}
		}
	})
}
