package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

var errBad = errors.New("onbeat takes no such type")

// moving is a queue of asynq whose tasks move. Of the type "bad" onbeat takes none, unless it takes all. Tasks go by their IDs.
type moving struct {
	*testing.T
	rdb   *redis.Client
	queue string

	all    bool
	onbeat map[string]bool // the tasks that it has
	stay   []string        // those of which the last move told, and
	held   []string        // those of them that are held
}

func newMoving(t *testing.T, rdb *redis.Client, queue string) *moving {
	return &moving{T: t, rdb: rdb, queue: queue, onbeat: map[string]bool{}}
}

func (m *moving) key(end string) string { return "asynq:{" + m.queue + "}:" + end }

// waits has a task wait in asynq, as its client and its server leave it.
func (m *moving) waits(state, id, typ string, due float64) {
	m.Helper()
	var msg []byte
	for i, text := range []string{typ, "{}", id, m.queue} {
		msg = protowire.AppendString(protowire.AppendTag(msg, protowire.Number(i+1), protowire.BytesType), text)
	}
	pipe := m.rdb.Pipeline()
	pipe.HSet(m.Context(), m.key("t:"+id), "msg", msg, "state", state)
	if state == "pending" {
		pipe.LPush(m.Context(), m.key(state), id)
	} else {
		pipe.ZAdd(m.Context(), m.key(state), redis.Z{Member: id, Score: due})
	}
	if _, err := pipe.Exec(m.Context()); err != nil {
		m.Fatal(err)
	}
}

// hold has a pending task held, as a move leaves it that ends before it has added it.
func (m *moving) hold(id string) {
	m.rdb.LRem(m.Context(), m.key("pending"), -1, id)
	m.rdb.ZAdd(m.Context(), m.key("onbeat"), redis.Z{Member: id})
}

// add is that of onbeat.
func (m *moving) add(_ context.Context, list []*task.Task) (map[*task.Task]error, error) {
	refused := map[*task.Task]error{}
	for _, t := range list {
		if t.Type == "bad" && !m.all {
			refused[t] = errBad
		} else {
			m.onbeat[t.ID[len("asynq:"+m.queue+":"):]] = true
		}
	}
	return refused, nil
}

func (m *moving) move(rdb *redis.Client, add func(context.Context, []*task.Task) (map[*task.Task]error, error)) (int, error) {
	m.stay, m.held = nil, nil
	one := foreign.AsynqMove{
		Redis: rdb, Queue: m.queue, Add: add, Check: func(*task.Task) error { return nil },
		Stays: func(id string, held bool, why error) {
			if !errors.Is(why, errBad) {
				m.Errorf("%s stays: %v", id, why)
			}
			if m.stay = append(m.stay, id); held {
				m.held = append(m.held, id)
			}
		},
	}
	return one.Run(m.Context())
}

// waiting returns what asynq would run: its sets of tasks with the times, and its list, as they are.
func (m *moving) waiting() (pending []string, sets map[string]float64) {
	pending, sets = m.rdb.LRange(m.Context(), m.key("pending"), 0, -1).Val(), map[string]float64{}
	for _, state := range []string{"scheduled", "retry"} {
		for _, z := range m.rdb.ZRangeWithScores(m.Context(), m.key(state), 0, -1).Val() {
			sets[fmt.Sprint(state, " ", z.Member)] = z.Score
		}
	}
	return pending, sets
}

// gone fails unless onbeat has all tasks, and asynq has none.
func (m *moving) gone(n int) {
	m.Helper()
	if keys := m.rdb.Keys(m.Context(), m.key("*")).Val(); len(keys) > 0 || len(m.onbeat) != n {
		m.Errorf("queue %s: onbeat has %d tasks of %d, asynq %v", m.queue, len(m.onbeat), n, keys)
	}
}

// A task that onbeat refuses only when it is added goes back to where it was. All others move.
func TestAsynqMove_givesBackWhatIsRefused(t *testing.T) {
	t.Parallel()
	m := newMoving(t, testredis.Private(t).Client(), "shop")
	var bad []string
	const n = 1204 // more than two batches
	for i := range n {
		id, typ := fmt.Sprintf("p%04d", i), "good"
		if i%3 == 1 {
			bad, typ = append(bad, id), "bad"
		}
		m.waits("pending", id, typ, 0)
	}
	for _, state := range []string{"scheduled", "retry"} {
		m.waits(state, state+"-a", "good", 2e9)
		m.waits(state, state+"-b", "bad", 2e9+0.5)
		m.waits(state, state+"-c", "good", 2e9+1)
		bad = append(bad, state+"-b")
	}
	moved, err := m.move(m.rdb, m.add)
	if want := n + 6 - len(bad); err != nil || moved != want || len(m.onbeat) != want {
		t.Fatalf("moved %d: %v; onbeat has %d", moved, err, len(m.onbeat))
	}
	if !slices.Equal(m.stay, bad) || m.held != nil {
		t.Errorf("told of %d tasks, %d of them held, want %d", len(m.stay), len(m.held), len(bad))
	}
	pending, sets := m.waiting()
	if slices.Sort(pending); !slices.Equal(pending, bad[:len(bad)-2]) {
		t.Errorf("%d are pending, want %d: %v", len(pending), len(bad)-2, pending)
	}
	if want := (map[string]float64{"scheduled scheduled-b": 2e9 + 0.5, "retry retry-b": 2e9 + 0.5}); !maps.Equal(sets, want) {
		t.Errorf("waiting are %v", sets)
	}
	if m.rdb.Exists(t.Context(), m.key("onbeat")).Val() != 0 {
		t.Error("some are held")
	}
	m.all = true
	if moved, err := m.move(m.rdb, m.add); err != nil || moved != len(bad) {
		t.Errorf("moved %d: %v", moved, err)
	}
	m.gone(n + 6)
}

// A move before this one may have added a task that is held. So it does not go back if it is refused now, and it stops no other.
func TestAsynqMove_keepsWhatWasHeldBefore(t *testing.T) {
	t.Parallel()
	m := newMoving(t, testredis.Private(t).Client(), "shop")
	for _, id := range []string{"bad-1", "good-1", "bad-2", "good-2"} {
		typ, _, _ := strings.Cut(id, "-")
		m.waits("pending", id, typ, 0)
	}
	m.hold("bad-1")
	m.hold("good-1")
	for range 2 {
		if _, err := m.move(m.rdb, m.add); err != nil {
			t.Fatal(err)
		}
		pending, _ := m.waiting()
		if held := m.rdb.ZRange(t.Context(), m.key("onbeat"), 0, -1).Val(); !slices.Equal(held, []string{"bad-1"}) || !slices.Equal(pending, []string{"bad-2"}) {
			t.Errorf("held are %v, pending %v", held, pending)
		}
		if !slices.Equal(m.stay, []string{"bad-1", "bad-2"}) || !slices.Equal(m.held, []string{"bad-1"}) {
			t.Errorf("told of %v, and that held are %v", m.stay, m.held)
		}
	}
	m.all = true
	if moved, err := m.move(m.rdb, m.add); err != nil || moved != 2 {
		t.Errorf("moved %d: %v", moved, err)
	}
	m.gone(4)
}

// If adding fails, those that are known to be refused go back all the same, and the others stay held.
func TestAsynqMove_givesBackThoughAddingFails(t *testing.T) {
	t.Parallel()
	m := newMoving(t, testredis.Private(t).Client(), "shop")
	m.waits("pending", "good", "good", 0)
	m.waits("scheduled", "later", "good", 2e9)
	m.waits("pending", "bad", "bad", 0)
	if _, err := m.move(m.rdb, func(ctx context.Context, list []*task.Task) (map[*task.Task]error, error) {
		refused, _ := m.add(ctx, list)
		return refused, errCrash // and nobody knows what became of the others
	}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	pending, _ := m.waiting()
	if held := m.rdb.ZRange(t.Context(), m.key("onbeat"), 0, -1).Val(); !slices.Equal(held, []string{"good"}) || !slices.Equal(pending, []string{"bad"}) {
		t.Errorf("held are %v, pending %v", held, pending)
	}
	m.all = true
	if moved, err := m.move(m.rdb, m.add); err != nil || moved != 3 {
		t.Errorf("moved %d: %v", moved, err)
	}
	m.gone(3)
}

// A move that ends before or after any of its steps loses no task, and leaves none where both would run it. The next move ends it.
func TestAsynqMove_isHealedAfterACrash(t *testing.T) {
	t.Parallel()
	server := testredis.Private(t)
	rdb := server.Client()
	for _, after := range []bool{false, true} {
		for step := 1; ; step++ {
			m := newMoving(t, rdb, fmt.Sprintf("after-%v-%d", after, step))
			all := map[string]string{"good-1": "pending", "bad-1": "pending", "bad-2": "scheduled", "good-2": "retry", "bad-3": "retry"}
			for _, id := range slices.Sorted(maps.Keys(all)) {
				typ, _, _ := strings.Cut(id, "-")
				m.waits(all[id], id, typ, 2e9)
			}
			c := &crash{after: after}
			dying := server.Client()
			if err := dying.Ping(t.Context()).Err(); err != nil { // connecting is no step
				t.Fatal(err)
			}
			dying.AddHook(c)
			c.left = step
			_, err := m.move(dying, func(ctx context.Context, list []*task.Task) (refused map[*task.Task]error, err error) {
				err = c.step(func() error { refused, err = m.add(ctx, list); return err })
				return refused, err
			})
			if c.left > 0 { // it ended before that step
				if err != nil || step < 10 {
					t.Errorf("without a crash, of %d steps: %v", step-1, err)
				}
				break
			}
			if !errors.Is(err, errCrash) {
				t.Errorf("%s: %v", m.queue, err)
			}
			m.each(all, false)
			if _, err := m.move(rdb, m.add); err != nil {
				t.Errorf("%s, the next move: %v", m.queue, err)
			}
			m.each(all, true)
			m.all = true
			if _, err := m.move(rdb, m.add); err != nil {
				t.Errorf("%s, when all are taken: %v", m.queue, err)
			}
			m.gone(len(all))
		}
	}
}

// each checks that each task, which was in a state, is in one place: asynq has it as it was, or it is held, or onbeat has it. It may be held
// and in onbeat after a crash; after a move that ended well it is not, and the good ones are all in onbeat.
func (m *moving) each(states map[string]string, ended bool) {
	m.Helper()
	pending, sets := m.waiting()
	for id, state := range states {
		n := 0
		for _, p := range pending {
			if p == id {
				n++
			}
		}
		there := n == 1 && state == "pending" || n == 0 && sets[state+" "+id] == 2e9
		held := m.rdb.ZScore(m.Context(), m.key("onbeat"), id).Err() == nil
		good := strings.HasPrefix(id, "good")
		if n > 1 || there && (held || m.onbeat[id]) || !there && !held && !m.onbeat[id] || m.onbeat[id] != good && (ended || !good) || ended && held && good {
			m.Errorf("queue %s, ended %v: %s: with asynq %v, held %v, with onbeat %v", m.queue, ended, id, there, held, m.onbeat[id])
		}
	}
	if len(sets)+len(pending) > len(states) {
		m.Errorf("queue %s: waiting are %v and %v", m.queue, pending, sets)
	}
}

var errCrash = errors.New("crash")

// crash lets a process end before a step, or after it: nothing that comes later is done.
type crash struct {
	left  int // steps until then; the last is the one; 0: no step counts yet
	after bool
	dead  bool
}

func (c *crash) step(do func() error) error {
	if c.dead {
		return errCrash
	}
	if c.left == 0 {
		return do()
	}
	if c.left--; c.left > 0 {
		return do()
	}
	if c.dead = true; c.after {
		_ = do()
	}
	return errCrash
}

// DialHook is of a [redis.Hook].
func (*crash) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is of a [redis.Hook].
func (c *crash) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return c.step(func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook is of a [redis.Hook].
func (c *crash) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return c.step(func() error { return next(ctx, cmds) })
	}
}
