package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// split has a mover move to partitions at these places. Tasks whose IDs begin with away lie in the partition of this index, the others
// in that of index well. It returns the queues of the partitions.
func (w *world) split(c *MoverConfig, away, well int, at ...redis.UniversalClient) (queues []*queue.Queue) {
	w.Helper()
	for i, rdb := range at {
		q, err := queue.New(rdb, queue.Partition{Namespace: w.ns, Number: i + 1}, queue.Caps{})
		w.must(err)
		p, err := producer.New(q.Client(), w.ns, producer.Config{})
		w.must(err)
		queues, c.Parts = append(queues, q), append(c.Parts, Part{Redis: q.Client(), Producer: p})
	}
	c.Redis, c.Producer = c.Parts[0].Redis, c.Parts[0].Producer
	c.Where = func(x *task.Task) (int, error) {
		if strings.HasPrefix(x.ID, "away") {
			return away + 1, nil
		}
		return well + 1, nil
	}
	return queues
}

// While one partition is away, whichever, the mover moves the rows of the other one, and keeps those of the first.
func TestMove_aPartitionIsAway(t *testing.T) {
	t.Parallel()
	for away := range 2 {
		t.Run(fmt.Sprint(away+1), func(t *testing.T) {
			t.Parallel()
			rdb := testredis.Client(t)
			w := newWorld(t, onSQLite(t), rdb)
			gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			defer gone.Close()
			at := []redis.UniversalClient{rdb, rdb}
			at[away] = gone
			var well *queue.Queue
			w.run(w.mover(func(c *MoverConfig) { well = w.split(c, away, 1-away, at...)[1-away] }))
			for i := range 5 {
				w.add(task.New("job", nil, task.ID(fmt.Sprint("away", i))), task.New("job", nil, task.ID(fmt.Sprint("well", i))))
				testredis.Eventually(t, patience, func() bool {
					return well.Client().HExists(t.Context(), well.Keys().Tasks, fmt.Sprint("well", i)).Val()
				}, "row %d of the other partition moves", i)
			}
			testredis.Eventually(t, patience, func() bool { return w.rows() == 5 }, "the five rows of the partition that is away are left")
		})
	}
}

// hanging is a Redis that neither answers nor refuses, while it is on.
type hanging struct {
	on    atomic.Bool
	asked atomic.Int32
}

func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() {
			h.asked.Add(1)
			<-ctx.Done()
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		return next(ctx, cmd)
	}
}

// hung returns a mover, and the queues of its two partitions. The first hangs.
func (w *world) hung() (m *Mover, h *hanging, queues []*queue.Queue) {
	w.Helper()
	through := redis.NewClient(w.rdb.(*redis.Client).Options())
	w.Cleanup(func() { _ = through.Close() })
	h = &hanging{}
	h.on.Store(true)
	through.AddHook(h)
	m = w.mover(func(c *MoverConfig) { queues = w.split(c, 0, 1, through, w.rdb) })
	return m, h, queues
}

// Rows of a partition that hangs hold up none behind them, in a soak nearly as many as a mover passes over. They move as soon as it answers.
func TestMove_aPartitionHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	m, h, queues := w.hung()
	batches := testredis.Size(8, maxStuck/maxBatch-1)
	w.add(jobs("away", batches*maxBatch)...)
	w.add(jobs("well", 10)...)
	began := time.Now()
	again := 0
	for range batches + 1 {
		_, n := w.turn(m)
		again += n
	}
	if n := w.rdb.HLen(t.Context(), queues[1].Keys().Tasks).Val(); n != 10 {
		t.Errorf("%d tasks of the other partition moved", n)
	}
	if asked := h.asked.Load(); asked == 0 || asked > int32(1+again)+int32(time.Since(began)/awayFor) {
		t.Errorf("a partition that is known to hang was asked %d times in %v", asked, time.Since(began))
	}
	h.on.Store(false)
	m.away[0].last = time.Time{} // as if its time was up
	w.drain(m)
	if n := w.rdb.HLen(t.Context(), queues[0].Keys().Tasks).Val(); n != int64(batches*maxBatch) || w.rows() != 0 {
		t.Errorf("%d tasks of the partition that answers again, %d rows", n, w.rows())
	}
}

// Beyond that number the mover stops, until the partition answers.
func TestMove_tooManyRowsOfAPartitionThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	m, h, _ := w.hung()
	w.add(jobs("away", 1)...)
	w.drain(m)
	for id := range int64(maxStuck) {
		m.away[0].rows.pass(-id, time.Now())
	}
	if _, err := m.turn(t.Context()); !errors.Is(err, errStuck) {
		t.Error(err)
	}
	h.on.Store(false)
	m.away[0].last = time.Time{} // as if its time was up
	w.drain(m)
	if w.rows() != 0 {
		t.Errorf("%d rows", w.rows())
	}
}

// A mover that seldom looks does so while a partition is away: nobody tells it that the partition is back.
func TestMove_looksForAPartitionThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onSQLite(t), testredis.Client(t))
	w.at.Poll = time.Hour
	m, h, _ := w.hung()
	w.add(jobs("away", 1)...)
	w.drain(m)
	h.on.Store(false)
	w.run(m)
	testredis.Eventually(t, patience, func() bool { return w.rows() == 0 }, "the row moves")
}
