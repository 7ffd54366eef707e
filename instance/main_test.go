package instance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// rig is one partition, and what a test does to it without a manager.
type rig struct {
	*testing.T
	rdb redis.UniversalClient
	q   *queue.Queue
	reg *Registry
	p   queue.Partition
	seq int64
	// want is the most that claim takes.
	want int
}

func newRig(t *testing.T, rdb redis.UniversalClient) *rig {
	t.Helper()
	return rigOf(t, rdb, testredis.Namespace(t))
}

func rigOf(t *testing.T, rdb redis.UniversalClient, namespace string) *rig {
	t.Helper()
	return rigIn(t, rdb, queue.Partition{Namespace: namespace})
}

func rigIn(t *testing.T, rdb redis.UniversalClient, p queue.Partition) *rig {
	t.Helper()
	q, err := queue.New(rdb, p, queue.Caps{})
	must(t, err)
	reg, err := NewRegistry(q.Client(), p.Namespace)
	must(t, err)
	return &rig{T: t, rdb: rdb, q: q, reg: reg, p: p, want: 10}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// member is an instance that was registered.
type member struct {
	id  string
	gen int64
}

type change func(*Config)

func standby(c *Config) { c.Standby = true }
func sticky(c *Config)  { c.Lead = LeadSticky }
func consume(rule Consume) change {
	return func(c *Config) { c.Consume = rule }
}

// join registers an instance; up also makes it ready.
func (r *rig) join(id, release string, changes ...change) member {
	r.Helper()
	c := Config{ID: id, Release: release, Lease: time.Minute}
	for _, f := range changes {
		f(&c)
	}
	gen, _, _, err := r.reg.Register(context.Background(), c, Past{})
	must(r, err)
	return member{id, gen}
}

func (r *rig) up(id, release string, changes ...change) member {
	r.Helper()
	m := r.join(id, release, changes...)
	r.ready(m)
	return m
}

func (r *rig) ready(m member) View {
	r.Helper()
	v, err := r.reg.Ready(context.Background(), m.id, m.gen, DefaultLease)
	must(r, err)
	return v
}

func (r *rig) resign(m member) View {
	r.Helper()
	v, err := r.reg.Resign(context.Background(), m.id, m.gen)
	must(r, err)
	return v
}

func (r *rig) leave(m member) View {
	r.Helper()
	v, err := r.reg.Deregister(context.Background(), m.id, m.gen)
	must(r, err)
	return v
}

func (r *rig) beat(m member) Beat {
	r.Helper()
	b, err := r.reg.Heartbeat(context.Background(), m.id, m.gen, time.Minute, time.Time{}, "")
	must(r, err)
	return b
}

// idles lets an instance watch for the next task as if it never came, so that its silence is no cause to suspect it.
func (r *rig) idles(m member) {
	r.Helper()
	must(r, r.rdb.ZAdd(context.Background(), r.q.Keys().Watch, redis.Z{Score: 1 << 52, Member: m.id}).Err())
}

// prove lets an instance have been ready for long: that it is lost is no strike against its release.
func (r *rig) prove(m member) {
	r.Helper()
	must(r, r.rdb.ZRem(context.Background(), r.q.Keys().Trial, m.gen).Err())
}

// expire lets the lease of an instance have run out some time ago, as if it had crashed.
func (r *rig) expire(m member, ago time.Duration) {
	r.Helper()
	now, err := r.q.Now(context.Background())
	must(r, err)
	end := float64(now.Add(-ago).UnixMilli())
	must(r, r.rdb.ZAdd(context.Background(), r.q.Keys().Instances, redis.Z{Score: end, Member: m.id}).Err())
}

// lead is what the leader hash says.
func (r *rig) lead() (id string, epoch int64, open bool) {
	r.Helper()
	h, err := r.rdb.HGetAll(context.Background(), r.q.Keys().Leader).Result()
	must(r, err)
	epoch, _ = strconv.ParseInt(h["epoch"], 10, 64)
	return h["id"], epoch, h["open"] == "1"
}

func (r *rig) wantLeader(want string) int64 {
	r.Helper()
	got, epoch, _ := r.lead()
	if got != want {
		r.Fatalf("%q leads, want %q", got, want)
	}
	return epoch
}

func (r *rig) term(m member) queue.Term {
	r.Helper()
	_, epoch, _ := r.lead()
	return queue.Term{Instance: m.id, Gen: m.gen, Epoch: epoch}
}

func (r *rig) open(m member) {
	r.Helper()
	_, err := r.reg.Open(context.Background(), r.term(m))
	must(r, err)
}

func (r *rig) wantErr(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("error %v, want %v", err, want)
	}
}

// forget deletes every key of the partition: a Redis that lost its memory.
func (r *rig) forget() {
	r.Helper()
	ctx := context.Background()
	keys, err := r.rdb.Keys(ctx, r.p.Prefix()+"*").Result()
	must(r, err)
	for _, k := range keys {
		must(r, r.rdb.Del(ctx, k).Err())
	}
}

// testTimeout is what a slow machine gets.
const testTimeout = 30 * time.Second

var lane = queue.Lane{Queue: "default", Type: "t"}

// enqueue adds tasks that are due at once.
func (r *rig) enqueue(ids ...string) {
	r.Helper()
	var list []*task.Task
	for _, id := range ids {
		list = append(list, &task.Task{ID: id, Type: lane.Type, MaxAttempts: 2})
	}
	r.add(list...)
}

func (r *rig) add(list ...*task.Task) {
	r.Helper()
	refused, _, err := r.q.Enqueue(context.Background(), list, true)
	must(r, err)
	must(r, errors.Join(refused...))
}

// claim is one cycle of an instance, with what it may take.
func (r *rig) claim(m member, settle ...queue.Settlement) (*queue.CycleReply, error) {
	r.Helper()
	r.seq++
	return r.q.Cycle(context.Background(), &queue.CycleRequest{
		Instance: m.id, Gen: m.gen, Seq: r.seq, Want: r.want, Settle: settle, Lanes: []queue.LaneClaim{{Lane: lane}},
	})
}

func (r *rig) wantClaims(m member, want int) []*task.Task {
	r.Helper()
	got, err := r.claim(m)
	must(r, err)
	if len(got.Claimed) != want {
		r.Fatalf("%s claimed %d tasks, want %d (may claim: %v)", m.id, len(got.Claimed), want, got.MayClaim)
	}
	return got.Claimed
}

// events lists what was written of an instance.
func (r *rig) events() (list []string) {
	r.Helper()
	all, err := r.rdb.XRange(context.Background(), r.q.Keys().Events, "-", "+").Result()
	must(r, err)
	for _, e := range all {
		what, _ := e.Values["event"].(string)
		who, _ := e.Values["instance"].(string)
		list = append(list, what+" "+who)
	}
	return list
}

// heir is a new leader with an open gate.
func (r *rig) heir() member {
	r.Helper()
	m := r.up("heir", "newer-than-all")
	r.open(m)
	return m
}

func z(member string, at time.Time) redis.Z {
	return redis.Z{Member: member, Score: float64(at.UnixMilli())}
}

func scan(t testing.TB, text any, into ...any) {
	t.Helper()
	s, _ := text.(string)
	if _, err := fmt.Sscan(s, into...); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}
