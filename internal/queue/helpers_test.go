package queue_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// world is one partition of a Redis, with what a test does to it. Its methods fail the test if they fail.
type world struct {
	testing.TB
	rdb  redis.UniversalClient
	q    *queue.Queue
	reg  *instance.Registry
	keys queue.Keys
	part queue.Partition
}

func newWorld(t testing.TB, rdb redis.UniversalClient, caps ...queue.Caps) *world {
	t.Helper()
	return worldIn(t, rdb, testredis.Namespace(t), caps...)
}

func worldIn(t testing.TB, rdb redis.UniversalClient, namespace string, caps ...queue.Caps) *world {
	t.Helper()
	p := queue.Partition{Namespace: namespace}
	q, err := queue.New(rdb, p, append(caps, queue.Caps{})[0])
	if err != nil {
		t.Fatal(err)
	}
	reg, err := instance.NewRegistry(rdb, p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &world{TB: t, rdb: rdb, q: q, reg: reg, keys: p.Keys(), part: p}
}

// eachWorld runs a test in a world with payloads in the clear, and in a world that encrypts them: their records begin differently.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Run("clear", func(t *testing.T) { test(t, newWorld(t, rdb)) })
		t.Run("encrypted", func(t *testing.T) {
			w := newWorld(t, rdb)
			keys, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{{ID: "k", Secret: make([]byte, task.EncryptionKeyBytes)}}}, w.part.Namespace)
			w.must(err)
			w.q.SealWith(keys)
			test(t, w)
			for id, record := range w.rdb.HGetAll(t.Context(), w.keys.Tasks).Val() {
				if record[:1] != "2" {
					t.Errorf("the record of %s is in the clear: %q", id, record)
				}
			}
		})
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// inst is a registered instance.
type inst struct {
	*world
	id    string
	gen   int64
	epoch int64
	seq   int64
}

// join registers an instance, makes it ready and opens the gate if it leads.
func (w *world) join(id string, change ...func(*instance.Config)) *inst {
	w.Helper()
	c := instance.Config{ID: id, Lead: instance.LeadNewest, Consume: instance.ConsumeNewest, Lease: time.Minute}
	for _, f := range change {
		f(&c)
	}
	gen, _, _, err := w.reg.Register(w.Context(), c, instance.Past{})
	w.must(err)
	v, err := w.reg.Ready(w.Context(), id, gen, instance.DefaultLease)
	w.must(err)
	i := &inst{world: w, id: id, gen: gen}
	if v.Leader == id {
		i.epoch = v.Epoch
		_, err = w.reg.Open(w.Context(), i.term())
		w.must(err)
	}
	return i
}

func consume(c instance.Consume) func(*instance.Config) {
	return func(cfg *instance.Config) { cfg.Consume = c }
}

func release(r string) func(*instance.Config) {
	return func(cfg *instance.Config) { cfg.Release = r }
}

func (i *inst) term() queue.Term { return queue.Term{Instance: i.id, Gen: i.gen, Epoch: i.epoch} }

// lose makes the lease of i run out, and lets a heartbeat of other find out.
func (i *inst) lose(other *inst) {
	i.Helper()
	i.must(i.rdb.ZAdd(i.Context(), i.keys.Instances, redis.Z{Score: 1, Member: i.id}).Err())
	other.beat()
}

func (i *inst) beat() instance.Beat {
	i.Helper()
	b, err := i.reg.Heartbeat(i.Context(), i.id, i.gen, time.Minute, time.Time{}, "")
	i.must(err)
	return b
}

// request is the next cycle of i.
func (i *inst) request(want int, lanes []queue.LaneClaim, settle ...queue.Settlement) *queue.CycleRequest {
	i.seq++
	return &queue.CycleRequest{Instance: i.id, Gen: i.gen, Seq: i.seq, Want: want, Lanes: lanes, Settle: settle}
}

func (i *inst) cycle(want int, lanes []queue.LaneClaim, settle ...queue.Settlement) *queue.CycleReply {
	i.Helper()
	r, err := i.q.Cycle(i.Context(), i.request(want, lanes, settle...))
	i.must(err)
	return r
}

// claim takes exactly n tasks.
func (i *inst) claim(n int, lanes []queue.LaneClaim) []*task.Task {
	i.Helper()
	r := i.cycle(n, lanes)
	if len(r.Claimed) != n {
		i.Fatalf("claimed %d tasks, want %d: %+v", len(r.Claimed), n, r)
	}
	return r.Claimed
}

// lanesOf are lanes of the default queue at normal priority, in one group.
func lanesOf(types ...string) []queue.LaneClaim {
	var list []queue.LaneClaim
	for _, typ := range types {
		list = append(list, queue.LaneClaim{Lane: lane(typ)})
	}
	return list
}

func lane(typ string) queue.Lane { return queue.Lane{Queue: task.DefaultQueue, Type: typ} }

// add enqueues tasks, all of which must be taken.
func (w *world) add(tasks ...*task.Task) {
	w.Helper()
	refused, added, err := w.q.Enqueue(w.Context(), tasks, true)
	w.must(err)
	if added != len(tasks) {
		w.Fatalf("added %d of %d", added, len(tasks))
	}
	for _, r := range refused {
		w.must(r)
	}
}

// job is a task of type "job".
func job(id string, opts ...task.Option) *task.Task {
	return task.New("job", []byte("payload of "+id), append([]task.Option{task.ID(id)}, opts...)...)
}

func jobs(prefix string, n int, opts ...task.Option) []*task.Task {
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = job(prefix+strconv.Itoa(i), opts...)
	}
	return list
}

func finished(t *task.Task) queue.Settlement {
	return queue.Settlement{ID: t.ID, Fence: t.Fence, Outcome: queue.Finished}
}

func allFinished(tasks []*task.Task) []queue.Settlement {
	var list []queue.Settlement
	for _, t := range tasks {
		list = append(list, finished(t))
	}
	return list
}

func ids(tasks []*task.Task) []string {
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = t.ID
	}
	return list
}

func sortedIDs(tasks []*task.Task) []string {
	list := ids(tasks)
	slices.Sort(list)
	return list
}

func equal[T cmp.Ordered](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// now is the clock of Redis.
func (w *world) now() time.Time {
	w.Helper()
	t, err := w.q.Now(w.Context())
	w.must(err)
	return t
}

// meta is a counter.
func (w *world) meta(field string) string {
	w.Helper()
	v, err := w.rdb.HGet(w.Context(), w.keys.Meta, field).Result()
	if err != nil && err != redis.Nil {
		w.Fatal(err)
	}
	return v
}

func (w *world) count(key string) int64 {
	w.Helper()
	typ, err := w.rdb.Type(w.Context(), key).Result()
	w.must(err)
	switch typ {
	case "zset":
		return w.rdb.ZCard(w.Context(), key).Val()
	case "hash":
		return w.rdb.HLen(w.Context(), key).Val()
	case "stream":
		return w.rdb.XLen(w.Context(), key).Val()
	}
	return 0
}

func (w *world) score(key, member string) float64 {
	w.Helper()
	v, err := w.rdb.ZScore(w.Context(), key, member).Result()
	if err == redis.Nil {
		return -1
	}
	w.must(err)
	return v
}

// notes are all notes of the history, oldest first.
func (w *world) notes() []string {
	w.Helper()
	entries, err := w.rdb.XRange(w.Context(), w.keys.History, "-", "+").Result()
	w.must(err)
	var list []string
	for _, e := range entries {
		for _, f := range []string{"runs", "slots"} {
			if v, ok := e.Values[f].(string); ok {
				list = append(list, strings.Split(v, "\n")...)
			}
		}
	}
	return list
}
